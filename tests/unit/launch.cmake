tutti_test(launch_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/launch_slurm_test.cc ${CMAKE_CURRENT_LIST_DIR}/launch_srt_test.cc
  DEPS tutti_launch tutti_text)
tutti_test(rendezvous_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/rendezvous_test.cc DEPS tutti_sys)
