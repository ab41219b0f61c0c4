tutti_test(sys_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/sys_test.cc DEPS tutti_sys Threads::Threads)
