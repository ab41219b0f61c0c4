tutti_test(roster_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/roster_test.cc
  DEPS tutti_roster)
