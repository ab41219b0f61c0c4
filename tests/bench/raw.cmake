# The bare client every engine is compared with (docs/benchmarks.md).
add_executable(tutti-bench-raw ${CMAKE_CURRENT_LIST_DIR}/raw_client.cc
  ${CMAKE_CURRENT_LIST_DIR}/raw_reply.cc)
target_link_libraries(tutti-bench-raw PRIVATE tutti_house tutti_sys fmt::fmt CLI11::CLI11)
