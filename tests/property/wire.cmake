tutti_test(wire_codec_property SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_codec_property.cc
  DEPS tutti_wire_pure)
tutti_test(wire_link_property SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_link_property.cc
  DEPS tutti_wire_pure OPTIMISED)
