# For LD_PRELOAD: nothing links it.
add_library(tutti_wall_step MODULE ${CMAKE_CURRENT_LIST_DIR}/wall_step.cc)
target_link_libraries(tutti_wall_step PRIVATE tutti_house ${CMAKE_DL_LIBS})
