# The real coordinator against a hundred simulated agents.
include(${CMAKE_SOURCE_DIR}/tests/bench/centre.cmake)
tutti_test(run_scale_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_scale_test.cc
  DEPS tutti_test_program TIMEOUT 120 PLACES)
add_dependencies(run_scale_test tutti tutti-bench-agents)
