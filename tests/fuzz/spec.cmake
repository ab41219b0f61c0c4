# clang only: tests/fuzz is entered when TUTTI_FUZZ is set. Run for a while:
#   yaml_spec_fuzz -max_total_time=60 tests/fuzz/corpus/yaml_spec
add_executable(yaml_spec_fuzz ${CMAKE_CURRENT_LIST_DIR}/yaml_spec_fuzz.cc)
target_link_libraries(yaml_spec_fuzz PRIVATE tutti_house tutti_spec)
target_link_options(yaml_spec_fuzz PRIVATE -fsanitize=fuzzer)
