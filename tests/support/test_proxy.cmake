add_library(tutti_test_proxy STATIC ${CMAKE_CURRENT_LIST_DIR}/test_proxy.cc)
target_link_libraries(tutti_test_proxy PUBLIC tutti_house tutti_base tutti_sys Threads::Threads
  PRIVATE tutti_text tutti_test_certificate OpenSSL::SSL fmt::fmt)
