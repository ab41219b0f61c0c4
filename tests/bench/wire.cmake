add_executable(wire_bench ${CMAKE_CURRENT_LIST_DIR}/wire_bench.cc)
target_link_libraries(wire_bench PRIVATE tutti_house tutti_wire_pure benchmark::benchmark_main)
