foreach(name run_batch run_srt)
  tutti_test(${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}_test.cc
    DEPS tutti_test_program TIMEOUT 300 PLACES)
  add_dependencies(${name}_test tutti tutti-agent tutti-mock)
endforeach()
