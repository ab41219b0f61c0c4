tutti_fuzzer(mock_request NEEDS tutti_mock_llm)
