# The parts that need nghttpx say so and are skipped where it is not installed.
tutti_test(run_reach_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_reach_test.cc
  DEPS tutti_test_program tutti_test_certificate tutti_test_proxy tutti_scripted_server fmt::fmt
  TIMEOUT 300 PLACES)
add_dependencies(run_reach_test tutti tutti-agent tutti-mock)
