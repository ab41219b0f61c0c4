tutti_test(run_frontends_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_frontends_test.cc
  DEPS tutti_test_program TIMEOUT 300 PLACES)
add_dependencies(run_frontends_test tutti tutti-agent tutti-mock)
