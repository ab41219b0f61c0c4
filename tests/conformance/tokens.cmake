tutti_test(tokens_test PLACES SOURCES tokens_test.cc DEPS tutti_test_token_cases fmt::fmt)
if(tutti_rust_there)
  # The models' files are the same for every preset.
  add_test(NAME tokens_against_hf COMMAND ${CMAKE_CURRENT_LIST_DIR}/tokens_against_hf
    ${CMAKE_SOURCE_DIR}/build/tokens $<TARGET_FILE:tutti-token-check>)
  set_tests_properties(tokens_against_hf PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
