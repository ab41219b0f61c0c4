tutti_test(reply_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/reply_property_test.cc
  DEPS tutti_target)
tutti_test(usual_event_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/usual_event_property_test.cc
  DEPS tutti_target)
