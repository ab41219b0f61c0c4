tutti_test(target_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/target_frontend_test.cc ${CMAKE_CURRENT_LIST_DIR}/target_curl_end_test.cc
  DEPS tutti_target CURL::libcurl)
tutti_test(drive_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/drive_dealer_test.cc ${CMAKE_CURRENT_LIST_DIR}/drive_fifo_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/drive_due_queue_test.cc ${CMAKE_CURRENT_LIST_DIR}/drive_trajectory_book_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/health_meter_test.cc
  DEPS tutti_drive)
tutti_test(engine_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/engine_exchange_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_failure_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_connection_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_pacing_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_recall_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_setup_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_turns_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_direct_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_ways_test.cc
  DEPS tutti_drive tutti_scripted_server fmt::fmt)
# The same promises over libcurl.
add_test(NAME engine_multi_test COMMAND engine_test --gtest_filter=-EngineDirect.*:EngineWays.*)
set_tests_properties(engine_multi_test PROPERTIES TIMEOUT 300 ENVIRONMENT TUTTI_TEST_WAY=multi)
