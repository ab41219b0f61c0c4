# Replays the committed corpus and runs for a few seconds; longer by hand:
#   http_reader_fuzz -max_total_time=60 tests/fuzz/corpus/http_reader
add_executable(http_reader_fuzz ${CMAKE_CURRENT_LIST_DIR}/http_reader_fuzz.cc)
target_link_libraries(http_reader_fuzz PRIVATE tutti_house tutti_target)
target_link_options(http_reader_fuzz PRIVATE -fsanitize=fuzzer)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found/http_reader)
add_test(NAME http_reader_fuzz COMMAND http_reader_fuzz -max_total_time=5 -timeout=10
  -max_len=4096 -print_final_stats=0 ${CMAKE_CURRENT_BINARY_DIR}/found/http_reader
  ${CMAKE_CURRENT_LIST_DIR}/corpus/http_reader)
set_tests_properties(http_reader_fuzz PROPERTIES LABELS fuzz)
