tutti_test(rebuild_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/rebuild_test.cc
  DEPS tutti_report tutti_record tutti_wire_pure nlohmann_json::nlohmann_json)
