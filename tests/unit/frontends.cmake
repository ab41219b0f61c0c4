# Which frontend, from which address, when: pure parts, then over real sockets on both ways.
tutti_test(target_picker_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/target_picker_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/target_sources_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/sys_address_test.cc
  DEPS tutti_target)
tutti_test(engine_frontends_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/engine_frontends_test.cc
  DEPS tutti_drive tutti_scripted_server fmt::fmt)
add_test(NAME engine_frontends_multi_test COMMAND engine_frontends_test)
set_tests_properties(engine_frontends_multi_test PROPERTIES TIMEOUT 300
  ENVIRONMENT TUTTI_TEST_WAY=multi)
