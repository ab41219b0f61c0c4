#pragma once

// write_run_folder(): the files of a run that come from its records: events.jsonl,
// sample_idx_map.json, metrics/final_snapshot.json, performance/result_summary.json,
// performance/client_health.csv, accuracy/accuracy_results.json, scores.json,
// report.txt.
// Each appears whole or not at all; a run that was interrupted gets the same files, marked so.
// config.yaml is not its business.

#include <string>

#include "common/base/result.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// Writes all it can even when one file fails; the first failure is returned, naming its file. The
// summary is written only when the run had a performance phase, the accuracy file only when
// something was to be scored.
base::Status write_run_folder(const Report& report, const ledger::Ledger& ledger,
                              const PromptSource& prompts, const std::string& folder);

// sample_idx_map.json: {phase name: {query id: sample index}} of all issued queries, without
// warm-up. Phases of one name share a map.
std::string sample_idx_map_json(const RunFacts& facts, const ledger::Ledger& ledger,
                                const PromptSource& prompts);

}  // namespace tutti::report
