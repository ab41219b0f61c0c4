tutti_test(agent_machine_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/agent_machine_test.cc ${CMAKE_CURRENT_LIST_DIR}/agent_notes_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/session_meter_test.cc
  DEPS tutti_agent_machine)
