tutti_test(tls_session_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tls_session_test.cc
  DEPS tutti_target tutti_test_certificate OpenSSL::SSL OpenSSL::Crypto)
# Both ways onto the wire over TLS, through scripts and through every fault of tutti-mock.
tutti_test(engine_tls_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/engine_tls_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_tls_faults_test.cc
  DEPS tutti_drive tutti_scripted_server tutti_test_program fmt::fmt PLACES)
add_dependencies(engine_tls_test tutti-mock)
