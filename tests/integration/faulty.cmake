# What frontends, hosts, disks, clocks and strangers do to a run.
foreach(name run_faulty_frontends run_cut_hosts run_full_disk run_wall_step run_suspended
    run_strangers)
  tutti_test(${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}_test.cc
    DEPS tutti_test_program fmt::fmt TIMEOUT 120 PLACES)
  add_dependencies(${name}_test tutti tutti-agent tutti-mock)
endforeach()
target_link_libraries(run_cut_hosts_test PRIVATE tutti_test_hosts)
target_link_libraries(run_strangers_test PRIVATE tutti_wire tutti_scripted_server)
foreach(name run_wall_step run_suspended)
  add_dependencies(${name}_test tutti_wall_step)
  target_compile_definitions(${name}_test PRIVATE
    TUTTI_WALL_STEP="$<TARGET_FILE:tutti_wall_step>")
endforeach()
# A test program that skips says so with a reason; ctest shall count it as skipped, not as passed.
set_tests_properties(run_cut_hosts_test run_full_disk_test run_wall_step_test
  run_suspended_test PROPERTIES
  SKIP_REGULAR_EXPRESSION "SKIPPED: ")
