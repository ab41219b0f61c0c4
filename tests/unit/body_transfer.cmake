tutti_test(body_transfer_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/body_transfer_test.cc DEPS tutti_data fmt::fmt)
