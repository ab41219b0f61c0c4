# Single steps of the hot path and of the coordinator's path.
add_executable(micro_bench ${CMAKE_CURRENT_LIST_DIR}/micro_bench.cc)
target_link_libraries(micro_bench PRIVATE tutti_house tutti_target tutti_record tutti_plan
  tutti_ledger tutti_stats tutti_text tutti_wire_pure benchmark::benchmark_main)
