tutti_test(report_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/report_conformance_test.cc
  DEPS tutti_report nlohmann_json::nlohmann_json PLACES)
