#pragma once

// The client's own health in the run folder: what judge_client() is given, the file
// performance/client_health.csv, and the lines of report.txt. Private to the report folder but for
// the file. Pure.

#include <string>
#include <vector>

#include "coordinator/report/report.h"

namespace tutti::report {

// Of the performance phase: intervals that overlap the time from its start to its last issue (in a
// burst: its last reply), on the coordinator's clock.
verdict::ClientFacts client_facts(const RunFacts& facts, const Breakdown& breakdown,
                                  const std::vector<ledger::ClockMap>& clocks);

// One line per agent and interval, columns named with their units; the first line says them.
std::string client_health_csv(const Report& report);

// When each of an agent's worst values was: begin of its interval, coordinator's clock. Metrics
// that stayed 0 are left out. Keys as in the summary's "worst".
struct WorstAt {
  const char* key;
  base::Instant at{};
};
std::vector<WorstAt> worst_instants(const AgentFacts& agent, const ledger::ClockMap& clock);

// "Client-bound: …" with its findings, after the verdict.
void put_client_verdict(std::string& out, const Report& report);
// The table of worst values.
void put_client_health(std::string& out, const Report& report);

}  // namespace tutti::report
