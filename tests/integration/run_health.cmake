tutti_test(run_health_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_health_test.cc
  DEPS tutti_test_program fmt::fmt TIMEOUT 300 PLACES)
add_dependencies(run_health_test tutti tutti-agent tutti-mock)
