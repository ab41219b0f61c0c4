tutti_test(run_dataset_kinds_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_dataset_kinds_test.cc
  DEPS tutti_test_program tutti_rust TIMEOUT 300 PLACES)
add_dependencies(run_dataset_kinds_test tutti tutti-agent tutti-mock)
