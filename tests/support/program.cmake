add_library(tutti_test_program STATIC ${CMAKE_CURRENT_LIST_DIR}/program.cc
  ${CMAKE_CURRENT_LIST_DIR}/stage.cc)
target_link_libraries(tutti_test_program PUBLIC tutti_house nlohmann_json::nlohmann_json
  GTest::gtest fmt::fmt)
target_compile_definitions(tutti_test_program PRIVATE
  TUTTI_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
