# Wanted by tests/integration and tests/bench; either may be built without the other.
if(NOT TARGET tutti-delay-line)
  add_executable(tutti-delay-line ${CMAKE_CURRENT_LIST_DIR}/delay_line.cc)
  target_link_libraries(tutti-delay-line PRIVATE tutti_house tutti_base tutti_sys)
endif()
