#pragma once

// Where the tokens of replies are counted: on the agents while they run, or on the coordinator's
// host after it. By what was asked for and what the agents said of themselves. Pure.

#include <string>
#include <vector>

#include "coordinator/conduct/run_plan.h"
#include "coordinator/roster/roster.h"

namespace tutti::conduct {

struct CountingPlace {
  bool agents = false;
  std::string notice;   // a sentence for the log; empty: nothing to say
  std::string problem;  // not empty: agents were asked for, and some cannot; names them
};

// `auto` is the agents where all of them can count and each host has a core for every worker,
// session and one counting thread of its agents, and twice the memory that their tokenizers take: a
// measurement is not to pay for the counting.
CountingPlace choose_counting(const CountingPlan& plan,
                              const std::vector<const roster::Agent*>& agents);

}  // namespace tutti::conduct
