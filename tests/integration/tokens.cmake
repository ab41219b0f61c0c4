tutti_test(run_tokens_test SOURCES run_tokens_test.cc
  DEPS tutti_test_program tutti_model tutti_report TIMEOUT 300 PLACES)
add_dependencies(run_tokens_test tutti tutti-agent tutti-mock)
