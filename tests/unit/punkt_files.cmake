tutti_test(punkt_files_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/punkt_files_test.cc
  DEPS tutti_conduct fmt::fmt)
