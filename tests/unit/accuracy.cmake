tutti_test(accuracy_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/accuracy_extract_test.cc ${CMAKE_CURRENT_LIST_DIR}/accuracy_score_test.cc
          ${CMAKE_CURRENT_LIST_DIR}/accuracy_turns_test.cc
  DEPS tutti_accuracy)
