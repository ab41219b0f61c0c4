tutti_test(picker_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/picker_property_test.cc
  DEPS tutti_target)
