tutti_test(agent_counting_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/agent_counting_test.cc ${CMAKE_CURRENT_LIST_DIR}/model_pack_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/reply_counter_test.cc
  DEPS tutti_reply_counter tutti_agent_machine tutti_model PLACES)
tutti_test(counting_place_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/counting_place_test.cc
  DEPS tutti_run_machine)
