tutti_test(hostlist_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/hostlist_test.cc DEPS tutti_text)
