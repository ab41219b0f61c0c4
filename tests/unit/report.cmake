tutti_test(report_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/report_files_test.cc ${CMAKE_CURRENT_LIST_DIR}/report_events_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/report_fold_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/report_timing_test.cc ${CMAKE_CURRENT_LIST_DIR}/report_turns_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/health_series_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/client_report_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/report_clocks_test.cc
  DEPS tutti_report nlohmann_json::nlohmann_json)
