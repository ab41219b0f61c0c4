tutti_test(clock_property_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/clock_property_test.cc
  DEPS tutti_clock_fit)
