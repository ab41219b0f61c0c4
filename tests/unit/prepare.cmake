tutti_test(prepare_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/prepare_accuracy_test.cc
  DEPS tutti_conduct tutti_plan)
tutti_test(prepare_random_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/prepare_random_test.cc
  DEPS tutti_conduct PLACES)
tutti_test(prepare_harmony_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/prepare_harmony_test.cc
  DEPS tutti_conduct PLACES)
