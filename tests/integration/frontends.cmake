tutti_test(run_frontends_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_frontends_test.cc
  DEPS tutti_test_program TIMEOUT 300 PLACES)
add_dependencies(run_frontends_test tutti tutti-agent tutti-mock)
add_test(NAME few_ports COMMAND ${CMAKE_CURRENT_LIST_DIR}/few_ports ${CMAKE_BINARY_DIR}/bin)
set_tests_properties(few_ports PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
