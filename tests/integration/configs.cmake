# Every file of configs/, run against a mock.
tutti_test(run_configs_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_configs_test.cc
  DEPS tutti_test_program TIMEOUT 300 PLACES)
add_dependencies(run_configs_test tutti tutti-agent tutti-mock)
