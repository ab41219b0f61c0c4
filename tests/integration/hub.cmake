tutti_test(run_hub_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_hub_test.cc
  DEPS tutti_test_program tutti_scripted_server tutti_rust fmt::fmt TIMEOUT 300 PLACES)
add_dependencies(run_hub_test tutti tutti-agent tutti-mock)
