tutti_test(reply_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/reply_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/reply_end_test.cc ${CMAKE_CURRENT_LIST_DIR}/gap_tally_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/reply_own_apis_test.cc DEPS tutti_target)
