add_executable(hostlist_fuzz ${CMAKE_CURRENT_LIST_DIR}/hostlist_fuzz.cc)
target_link_libraries(hostlist_fuzz PRIVATE tutti_house tutti_text)
target_link_options(hostlist_fuzz PRIVATE -fsanitize=fuzzer)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found/hostlist)
add_test(NAME hostlist_fuzz COMMAND hostlist_fuzz -max_total_time=5 -timeout=10 -max_len=512
  -print_final_stats=0 ${CMAKE_CURRENT_BINARY_DIR}/found/hostlist
  ${CMAKE_CURRENT_LIST_DIR}/corpus/hostlist)
set_tests_properties(hostlist_fuzz PROPERTIES LABELS fuzz)
