include(${CMAKE_SOURCE_DIR}/tests/support/netns/delay_line.cmake)
