add_library(tutti_test_token_cases STATIC ${CMAKE_CURRENT_LIST_DIR}/token_cases.cc)
target_link_libraries(tutti_test_token_cases PUBLIC tutti_house tutti_model tutti_text PRIVATE fmt::fmt)
add_executable(tutti-token-check ${CMAKE_CURRENT_LIST_DIR}/token_check.cc)
target_link_libraries(tutti-token-check PRIVATE tutti_test_token_cases fmt::fmt)
