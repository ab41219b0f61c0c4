tutti_test(gpqa_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpqa_test.cc ${CMAKE_CURRENT_LIST_DIR}/random_vectors.cc
  DEPS tutti_data fmt::fmt nlohmann_json::nlohmann_json OpenSSL::Crypto PLACES)
