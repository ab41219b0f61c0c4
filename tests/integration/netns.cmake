# Real clocks and real delays between hosts in network namespaces. Says why and is skipped where root, tun
# devices or namespaces are missing.
include(${CMAKE_SOURCE_DIR}/tests/support/netns/delay_line.cmake)
add_test(NAME netns_clocks_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/netns_clocks
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(netns_clocks_test PROPERTIES TIMEOUT 240 SKIP_RETURN_CODE 77 PROCESSORS 2)
