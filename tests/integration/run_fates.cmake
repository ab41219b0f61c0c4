tutti_test(run_fates_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_fates_test.cc
  DEPS tutti_test_program TIMEOUT 400 PLACES)
add_dependencies(run_fates_test tutti tutti-agent tutti-mock)
