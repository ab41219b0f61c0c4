tutti_test(spec_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/spec_property_test.cc
  DEPS tutti_spec)
