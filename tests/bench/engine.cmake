# The agent's engine under a closed loop, beside the raw client (docs/benchmarks.md).
add_executable(tutti-bench-engine ${CMAKE_CURRENT_LIST_DIR}/engine_bench.cc)
target_link_libraries(tutti-bench-engine PRIVATE tutti_house tutti_drive tutti_data tutti_plan tutti_sys
  fmt::fmt CLI11::CLI11)
