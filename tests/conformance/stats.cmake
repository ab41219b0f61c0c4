tutti_test(stats_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/stats_test.cc ${CMAKE_CURRENT_LIST_DIR}/random_vectors.cc
  DEPS tutti_stats nlohmann_json::nlohmann_json OpenSSL::Crypto PLACES)
