# Replays the committed corpus and runs for a few seconds; longer by hand:
#   mock_request_fuzz -max_total_time=60 tests/fuzz/corpus/mock_request
add_executable(mock_request_fuzz ${CMAKE_CURRENT_LIST_DIR}/mock_request_fuzz.cc)
target_link_libraries(mock_request_fuzz PRIVATE tutti_house tutti_mock_llm)
target_link_options(mock_request_fuzz PRIVATE -fsanitize=fuzzer)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found/mock_request)
add_test(NAME mock_request_fuzz COMMAND mock_request_fuzz -max_total_time=5 -timeout=10
  -max_len=4096 -print_final_stats=0 ${CMAKE_CURRENT_BINARY_DIR}/found/mock_request
  ${CMAKE_CURRENT_LIST_DIR}/corpus/mock_request)
set_tests_properties(mock_request_fuzz PROPERTIES LABELS fuzz)
