#pragma once

// write_events(): the ledger as one event file, as if one process had published it: merged over
// agents on the coordinator's clock, per query issued < first chunk < further chunks < error <
// complete, per phase between its tracking marks. Memory: 4 bytes a record, and the queries in
// flight at once.

#include <functional>
#include <string_view>

#include "common/base/result.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// `sink` gets whole lines, many at a time. Stamps are the mapped ones, unchanged; only the order of
// lines is bent where the clock error would contradict what is known to have come first. Issued
// queries without a record have no stamp and so no line.
base::Status write_events(const RunFacts& facts, const ledger::Ledger& ledger,
                          const PromptSource& prompts,
                          const std::function<void(std::string_view)>& sink);

}  // namespace tutti::report
