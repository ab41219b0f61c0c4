tutti_test(record_batcher_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/record_batcher_test.cc
  DEPS tutti_agent_machine tutti_wire_pure)
