tutti_test(stats_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/stats_early_stopping_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/stats_live_histogram_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/stats_ratio_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/stats_series_test.cc
  DEPS tutti_stats)
