tutti_test(troubled_frontends_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/troubled_frontends_test.cc
  DEPS tutti_drive tutti_scripted_server fmt::fmt)
add_test(NAME troubled_frontends_multi_test COMMAND troubled_frontends_test)
set_tests_properties(troubled_frontends_multi_test PROPERTIES TIMEOUT 300
  ENVIRONMENT TUTTI_TEST_WAY=multi)
