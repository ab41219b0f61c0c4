add_executable(tutti-bench-dataset ${CMAKE_CURRENT_LIST_DIR}/dataset_load.cc)
target_link_libraries(tutti-bench-dataset PRIVATE tutti_house tutti_data tutti_base fmt::fmt)
