# The simulator at full speed, for long hunts (sim_seeds). The tests' build has it too.
if(NOT TARGET tutti_sim)
  add_subdirectory(${CMAKE_SOURCE_DIR}/tests/sim ${CMAKE_BINARY_DIR}/tests/sim)
endif()
