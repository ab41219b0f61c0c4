# What the coordinator holds and how it holds many agents.
tutti_test(centre_room_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/centre_room_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/held_commands_test.cc DEPS tutti_run_machine fmt::fmt)
tutti_test(peers_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/peers_test.cc DEPS tutti_conduct fmt::fmt)
