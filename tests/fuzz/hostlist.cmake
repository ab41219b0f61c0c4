tutti_fuzzer(hostlist NEEDS tutti_text MAX_LEN 512)
