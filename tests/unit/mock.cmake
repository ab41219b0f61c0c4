tutti_test(mock_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/mock_options_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_planner_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_raw_reply_test.cc
    ${CMAKE_SOURCE_DIR}/tests/bench/raw_reply.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_reply_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_request_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/mock_timer_wheel_test.cc
  DEPS tutti_mock_llm fmt::fmt nlohmann_json::nlohmann_json)
