tutti_fuzzer(http_reader NEEDS tutti_target)
tutti_fuzzer(json_event NEEDS tutti_target)
