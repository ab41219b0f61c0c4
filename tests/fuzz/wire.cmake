foreach(fuzzer envelope control batch)
  tutti_fuzzer(${fuzzer} NEEDS tutti_wire_pure)
endforeach()
