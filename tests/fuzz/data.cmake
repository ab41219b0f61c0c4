# What unpacks compressed data sets.
add_executable(expander_fuzz ${CMAKE_CURRENT_LIST_DIR}/expander_fuzz.cc)
target_link_libraries(expander_fuzz PRIVATE tutti_house tutti_data)
target_link_options(expander_fuzz PRIVATE -fsanitize=fuzzer)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found/expander)
add_test(NAME expander_fuzz COMMAND expander_fuzz -max_total_time=5 -timeout=10 -max_len=4096
  -print_final_stats=0 ${CMAKE_CURRENT_BINARY_DIR}/found/expander
  ${CMAKE_CURRENT_LIST_DIR}/corpus/expander)
set_tests_properties(expander_fuzz PROPERTIES LABELS fuzz)
