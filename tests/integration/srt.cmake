tutti_test(run_srt_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_srt_test.cc
  DEPS tutti_test_program TIMEOUT 300 PLACES)
add_dependencies(run_srt_test tutti tutti-agent tutti-mock)
