tutti_fuzzer(yaml_spec NEEDS tutti_spec)
