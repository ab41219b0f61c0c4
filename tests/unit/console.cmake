tutti_test(console_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/console_test.cc DEPS tutti_console)
