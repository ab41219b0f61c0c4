tutti_test(extractors_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/extractors_test.cc
  DEPS tutti_accuracy nlohmann_json::nlohmann_json PLACES)
