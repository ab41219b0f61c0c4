tutti_test(request_url_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/request_url_test.cc DEPS tutti_data)
