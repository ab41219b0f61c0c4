tutti_test(rouge_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/rouge_test.cc ${CMAKE_CURRENT_LIST_DIR}/random_vectors.cc
  DEPS tutti_accuracy nlohmann_json::nlohmann_json OpenSSL::Crypto PLACES)
tutti_test(punkt_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/punkt_test.cc
  DEPS tutti_accuracy tutti_conduct nlohmann_json::nlohmann_json PLACES)
