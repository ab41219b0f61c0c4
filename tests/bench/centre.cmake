# Simulated agents for tests/bench/centre and for the test that keeps it alive: part of the benchmarks
# and of the tests, whichever is asked for first.
if(NOT TARGET tutti-bench-agents)
  add_executable(tutti-bench-agents ${CMAKE_CURRENT_LIST_DIR}/centre_agents.cc
    ${CMAKE_CURRENT_LIST_DIR}/centre_agent.cc ${CMAKE_CURRENT_LIST_DIR}/centre_watch.cc)
  target_link_libraries(tutti-bench-agents PRIVATE tutti_house tutti_agent_machine tutti_wire
    tutti_stats tutti_sys fmt::fmt CLI11::CLI11)
endif()
# The floor beside it.
if(TUTTI_BENCH AND NOT TARGET tutti-bench-wire)
  add_executable(tutti-bench-wire ${CMAKE_CURRENT_LIST_DIR}/centre_wire.cc)
  target_link_libraries(tutti-bench-wire PRIVATE tutti_house tutti_wire fmt::fmt CLI11::CLI11)
endif()
