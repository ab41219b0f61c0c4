tutti_fuzzer(body_set NEEDS tutti_data)
tutti_fuzzer(expander NEEDS tutti_data)
