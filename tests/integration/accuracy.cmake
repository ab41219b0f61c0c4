tutti_test(run_accuracy_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_accuracy_test.cc
  DEPS tutti_test_program TIMEOUT 300 PLACES)
add_dependencies(run_accuracy_test tutti tutti-agent tutti-mock)
