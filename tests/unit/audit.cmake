tutti_test(audit_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/audit_test.cc DEPS tutti_audit)
