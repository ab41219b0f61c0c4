#pragma once

// From the ledger's texts and the data sets' right answers to what the report says of
// accuracy. After the run, on the main thread; one read of each reply's text.

#include <string>

#include "coordinator/accuracy/results.h"
#include "coordinator/conduct/prepare.h"
#include "coordinator/conduct/run_host.h"
#include "coordinator/reply_lengths.h"
#include "coordinator/report/rebuild.h"

namespace tutti {

struct Scores {
  accuracy::Entries entries;
  std::string turns;  // scores.json; empty: no turns of conversations were to be scored
};

// One entry for each accuracy data set, in order, those whose phase was never begun included, and
// one for the turns of the performance phase before them. An entry is complete when the run reached
// its end and every query of its phase has a record. Logs each score. `lengths`: how the tokens of
// the accuracy data sets' replies are counted.
Scores score_run(const conduct::RunInput& input, const conduct::RunOutcome& outcome,
                 const LengthTerms& lengths);

// The same of a run rebuilt from spools, over what is known to have been issued (of conversations:
// over the turns with a record); no entry is complete. `config` is the run's own; its data sets
// must be here, and as they were. What cannot be scored is an entry that says why.
Scores score_rebuilt(const spec::Config& config, const report::Rebuilt& run);

}  // namespace tutti
