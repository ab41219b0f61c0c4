tutti_fuzzer(own_reply NEEDS tutti_target)
