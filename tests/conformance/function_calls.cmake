tutti_test(function_calls_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/function_calls_test.cc
  DEPS tutti_accuracy nlohmann_json::nlohmann_json PLACES)
