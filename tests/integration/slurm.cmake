# Real Slurm on three hosts in namespaces. Says why and is skipped where root or Slurm is missing. They mostly wait,
# and longest of all: they begin first (COST), with others beside them.
add_test(NAME slurm_launch_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/slurm_launch
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(slurm_launch_test PROPERTIES TIMEOUT 420 SKIP_RETURN_CODE 77 COST 40)
add_test(NAME slurm_signals_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/slurm_signals
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(slurm_signals_test PROPERTIES TIMEOUT 420 SKIP_RETURN_CODE 77 COST 80)
# The other ways to start it, as far as they can be tried on one host.
add_test(NAME deploy_files_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/deploy_files
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(deploy_files_test PROPERTIES TIMEOUT 180)
