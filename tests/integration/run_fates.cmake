tutti_test(run_fates_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/run_fates_test.cc
  DEPS tutti_test_program TIMEOUT 400 PLACES)
add_dependencies(run_fates_test tutti tutti-agent tutti-mock)
# Its cases mostly wait: four processes take a quarter of them each, so that ctest -j plays them side by side.
set(fates_shards 4)
set_property(TEST run_fates_test APPEND PROPERTY ENVIRONMENT
  "GTEST_TOTAL_SHARDS=${fates_shards};GTEST_SHARD_INDEX=0")
get_property(fates_environment TEST run_fates_test PROPERTY ENVIRONMENT)
math(EXPR fates_last "${fates_shards} - 1")
foreach(shard RANGE 1 ${fates_last})
  string(REPLACE "GTEST_SHARD_INDEX=0" "GTEST_SHARD_INDEX=${shard}" shard_environment "${fates_environment}")
  add_test(NAME run_fates_test_${shard} COMMAND run_fates_test)
  set_tests_properties(run_fates_test_${shard} PROPERTIES TIMEOUT 400 ENVIRONMENT "${shard_environment}")
endforeach()
