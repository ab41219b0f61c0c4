# link, envelope and codec are pure; curve and socket need ZeroMQ.
tutti_test(wire_link_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_link_test.cc DEPS tutti_wire_pure)
tutti_test(wire_envelope_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_envelope_test.cc
  DEPS tutti_wire_pure)
tutti_test(wire_codec_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_codec_test.cc
  DEPS tutti_wire_pure tutti_wire_proto msgpackc-cxx)
tutti_test(wire_curve_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_curve_test.cc DEPS tutti_wire)
tutti_test(wire_socket_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire_socket_test.cc DEPS tutti_wire)
set_tests_properties(wire_socket_test PROPERTIES
  ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp")
