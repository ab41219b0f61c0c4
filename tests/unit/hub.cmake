tutti_test(hub_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/hub_test.cc
  DEPS tutti_hub tutti_scripted_server fmt::fmt)
tutti_test(hub_files_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/hub_files_test.cc
  DEPS tutti_data tutti_model tutti_rust tutti_scripted_server fmt::fmt PLACES)
