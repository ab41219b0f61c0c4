tutti_test(calibrate_search_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/calibrate_health_test.cc
          ${CMAKE_CURRENT_LIST_DIR}/calibrate_search_test.cc
  DEPS tutti_calibrate)
