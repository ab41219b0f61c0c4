tutti_test(pcg64_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/pcg64_test.cc ${CMAKE_CURRENT_LIST_DIR}/random_vectors.cc
  DEPS tutti_base nlohmann_json::nlohmann_json OpenSSL::Crypto PLACES)
