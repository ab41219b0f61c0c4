tutti_test(plan_conformance_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/agentic_test.cc ${CMAKE_CURRENT_LIST_DIR}/plan_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/random_vectors.cc
  DEPS tutti_plan nlohmann_json::nlohmann_json OpenSSL::Crypto PLACES)
