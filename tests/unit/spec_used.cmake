tutti_test(spec_used_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/spec_used_test.cc DEPS tutti_spec PLACES)
