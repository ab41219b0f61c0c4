# One libFuzzer program each, and a ctest entry that replays the committed corpus and runs for a
# few seconds. New inputs go to the build folder, never to the source tree.
foreach(fuzzer sse csv json_event body_set)
  if(fuzzer STREQUAL "json_event")
    set(needs tutti_target)
  elseif(fuzzer STREQUAL "body_set")
    set(needs tutti_data)
  else()
    set(needs tutti_text)
  endif()
  add_executable(${fuzzer}_fuzz ${CMAKE_CURRENT_LIST_DIR}/${fuzzer}_fuzz.cc)
  target_link_libraries(${fuzzer}_fuzz PRIVATE tutti_house ${needs})
  target_link_options(${fuzzer}_fuzz PRIVATE -fsanitize=fuzzer)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found/${fuzzer})
  add_test(NAME ${fuzzer}_fuzz COMMAND ${fuzzer}_fuzz -max_total_time=5 -timeout=10 -max_len=4096
    -print_final_stats=0 ${CMAKE_CURRENT_BINARY_DIR}/found/${fuzzer}
    ${CMAKE_CURRENT_LIST_DIR}/corpus/${fuzzer})
  set_tests_properties(${fuzzer}_fuzz PROPERTIES LABELS fuzz)
endforeach()
