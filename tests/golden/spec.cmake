tutti_test(spec_golden_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/spec_golden_test.cc DEPS tutti_spec PLACES)
