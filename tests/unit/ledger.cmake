tutti_test(ledger_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/ledger_test.cc
  DEPS tutti_ledger)
