add_library(tutti_scripted_server STATIC ${CMAKE_CURRENT_LIST_DIR}/scripted_server.cc)
target_link_libraries(tutti_scripted_server
  PUBLIC tutti_house tutti_base tutti_sys tutti_test_certificate Threads::Threads
  PRIVATE fmt::fmt OpenSSL::SSL OpenSSL::Crypto)
