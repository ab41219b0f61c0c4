tutti_test(report_golden_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/report_golden_test.cc
  DEPS tutti_report PLACES)
