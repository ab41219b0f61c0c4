tutti_test(target_direct_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/http_reader_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/plain_text_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/stamp_map_test.cc
  DEPS tutti_target)
# Counts operator new, so it is a program of its own; the sanitizers bring theirs.
if(TUTTI_SANITIZE STREQUAL "")
  tutti_test(engine_alloc_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/engine_alloc_test.cc
      ${PROJECT_SOURCE_DIR}/tests/support/thread_allocations.cc
    DEPS tutti_drive tutti_scripted_server fmt::fmt)
endif()
