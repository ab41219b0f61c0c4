tutti_test(stats_property_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/stats_test.cc
  DEPS tutti_stats)
