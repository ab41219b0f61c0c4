add_executable(tutti-bench-tokens ${CMAKE_CURRENT_LIST_DIR}/tokens_bench.cc)
target_link_libraries(tutti-bench-tokens PRIVATE tutti_house tutti_model tutti_text tutti_base fmt::fmt)
