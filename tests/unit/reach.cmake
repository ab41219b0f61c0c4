# Proxies, logins, headers and certificates, through real connections.
tutti_test(engine_reach_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/engine_reach_test.cc
  DEPS tutti_drive tutti_scripted_server tutti_test_proxy fmt::fmt)
