# Whole runs with the real binaries against tutti-mock.
foreach(name run_agents run_ends run_patterns run_replies run_commands
    run_keys)
  tutti_test(${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}_test.cc
    DEPS tutti_test_program TIMEOUT 300 PLACES)
  add_dependencies(${name}_test tutti tutti-agent tutti-mock)
endforeach()
