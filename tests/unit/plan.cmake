tutti_test(plan_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/plan_count_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/plan_deal_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/plan_salts_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/plan_schedule_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/plan_stop_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/plan_trajectories_test.cc
  DEPS tutti_plan)
