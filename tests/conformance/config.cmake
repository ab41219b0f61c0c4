tutti_test(config_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/config_vectors_test.cc ${CMAKE_CURRENT_LIST_DIR}/config_vectors.cc
  DEPS tutti_spec fmt::fmt PLACES)
tutti_test(config_commands_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/config_commands_test.cc ${CMAKE_CURRENT_LIST_DIR}/config_vectors.cc
  DEPS tutti_test_program fmt::fmt TIMEOUT 300 PLACES)
add_dependencies(config_commands_test tutti tutti-agent tutti-mock)
