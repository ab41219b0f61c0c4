tutti_test(base_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/base_check_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/base_id_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/base_random_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/base_ring_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/base_time_test.cc
  DEPS tutti_base Threads::Threads)
