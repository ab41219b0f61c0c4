tutti_test(record_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/record_recorder_test.cc ${CMAKE_CURRENT_LIST_DIR}/record_spool_test.cc
  DEPS tutti_record Threads::Threads)
