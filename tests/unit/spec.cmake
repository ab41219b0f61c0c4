foreach(part yaml config flags dump)
  tutti_test(spec_${part}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/spec_${part}_test.cc
    DEPS tutti_spec fmt::fmt)
endforeach()
