tutti_test(run_machine_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_machine_test.cc ${CMAKE_CURRENT_LIST_DIR}/phase_run_test.cc
          ${CMAKE_CURRENT_LIST_DIR}/run_machine_parts_test.cc
  DEPS tutti_run_machine fmt::fmt)
