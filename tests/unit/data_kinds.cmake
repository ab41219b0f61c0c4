tutti_test(expander_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/data_expander_test.cc
  DEPS tutti_data PkgConfig::ZSTD ZLIB::ZLIB)
tutti_test(column_files_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/data_column_files_test.cc
  DEPS tutti_data tutti_rust PLACES)
tutti_test(predefined_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/data_predefined_test.cc
  DEPS tutti_data PLACES)
tutti_test(conversations_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/data_conversations_test.cc
  DEPS tutti_data fmt::fmt)
