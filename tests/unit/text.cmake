tutti_test(sse_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/sse_test.cc DEPS tutti_text)
tutti_test(json_text_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/json_text_test.cc DEPS tutti_text)
tutti_test(csv_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/csv_test.cc DEPS tutti_text)
