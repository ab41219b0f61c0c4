add_library(tutti_test_hosts STATIC ${CMAKE_CURRENT_LIST_DIR}/hosts.cc)
target_link_libraries(tutti_test_hosts PUBLIC tutti_house PRIVATE GTest::gtest fmt::fmt)
