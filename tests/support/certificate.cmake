add_library(tutti_test_certificate STATIC ${CMAKE_CURRENT_LIST_DIR}/certificate.cc)
target_link_libraries(tutti_test_certificate PUBLIC tutti_house tutti_base
  PRIVATE OpenSSL::SSL OpenSSL::Crypto)
