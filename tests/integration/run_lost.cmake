tutti_test(run_lost_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_lost_test.cc
  DEPS tutti_test_program TIMEOUT 120 PLACES)
add_dependencies(run_lost_test tutti tutti-agent tutti-mock)
