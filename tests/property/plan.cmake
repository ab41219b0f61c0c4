tutti_test(plan_property_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/plan_test.cc
  DEPS tutti_plan)
