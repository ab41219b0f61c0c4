tutti_test(run_agentic_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_agentic_test.cc
  DEPS tutti_test_program fmt::fmt TIMEOUT 300 PLACES)
add_dependencies(run_agentic_test tutti tutti-agent tutti-mock)
