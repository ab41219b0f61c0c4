# Proxies, logins, headers and certificates, through real connections.
tutti_test(engine_reach_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/engine_reach_test.cc
  DEPS tutti_drive tutti_scripted_server tutti_test_proxy fmt::fmt)
tutti_test(spec_reach_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/spec_reach_test.cc
  DEPS tutti_spec fmt::fmt)
tutti_test(conduct_reach_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/conduct_reach_test.cc
  DEPS tutti_conduct)
# The parts that need nghttpx say so and are skipped where it is not installed.
tutti_test(engine_http2_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/engine_http2_test.cc
  DEPS tutti_drive tutti_scripted_server tutti_test_program fmt::fmt PLACES)
