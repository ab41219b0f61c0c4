# The bare libcurl client that the engine's `multi` is compared with (docs/benchmarks.md).
add_executable(tutti-bench-curl ${CMAKE_CURRENT_LIST_DIR}/curl_client.cc)
target_link_libraries(tutti-bench-curl PRIVATE tutti_house tutti_sys CURL::libcurl fmt::fmt CLI11::CLI11)
