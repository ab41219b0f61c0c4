tutti_test(dataset_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/data_dataset_test.cc DEPS tutti_data)
tutti_test(request_body_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/body_request_test.cc DEPS tutti_data)
tutti_test(body_set_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/body_set_test.cc
  DEPS tutti_data PkgConfig::XXHASH)
