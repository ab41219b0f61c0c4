tutti_test(ledger_property_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/ledger_property_test.cc
  DEPS tutti_ledger)
