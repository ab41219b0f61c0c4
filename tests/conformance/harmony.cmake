tutti_test(harmony_test PLACES SOURCES ${CMAKE_CURRENT_LIST_DIR}/harmony_test.cc DEPS tutti_model)
if(tutti_rust_there)
  set_tests_properties(harmony_test PROPERTIES DEPENDS tokens_against_hf)
endif()
