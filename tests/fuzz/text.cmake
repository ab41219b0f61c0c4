tutti_fuzzer(sse NEEDS tutti_text)
tutti_fuzzer(csv NEEDS tutti_text)
