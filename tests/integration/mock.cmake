tutti_test(mock_server_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/mock_faults_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_process.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_server_test.cc
  DEPS tutti_base fmt::fmt nlohmann_json::nlohmann_json OpenSSL::SSL
  TIMEOUT 120 PLACES)
add_dependencies(mock_server_test tutti-mock)
