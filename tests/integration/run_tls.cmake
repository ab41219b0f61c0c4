tutti_test(run_tls_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_tls_test.cc
  DEPS tutti_test_program tutti_test_certificate TIMEOUT 300 PLACES)
add_dependencies(run_tls_test tutti tutti-agent tutti-mock)
