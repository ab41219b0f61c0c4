#pragma once

// score_run(): from the ledger's texts and the data sets' right answers to what the report says of
// accuracy. After the run, on the main thread; one read of each reply's text.

#include "coordinator/accuracy/results.h"
#include "coordinator/conduct/prepare.h"
#include "coordinator/conduct/run_host.h"

namespace tutti {

// One entry for each accuracy data set, in order, those whose phase was never begun included. An
// entry is complete when the run reached its end and every query of its phase has a record. Logs
// each score.
accuracy::Entries score_run(const conduct::RunInput& input, const conduct::RunOutcome& outcome);

}  // namespace tutti
