tutti_test(gpqa_files_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpqa_files_test.cc
  DEPS tutti_data tutti_rust tutti_scripted_server fmt::fmt PLACES)
