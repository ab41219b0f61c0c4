tutti_test(verdict_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/verdict_test.cc ${CMAKE_CURRENT_LIST_DIR}/client_health_test.cc
  DEPS tutti_verdict)
