#pragma once

// run_note(): what the coordinator tells every agent of a run so that a report can be made without
// it, as JSON text: the run's facts that are known before it starts. The agents keep it in their
// spools and read nothing in it. No secrets: endpoints stand there as they stand in reports. Pure.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// Of `facts`: run, version, start, config, names, kinds and pacings of all planned phases, and how
// many agents are expected.
std::string run_note(const RunFacts& facts);

// The same back; everything else in it is empty. kInput when it is not such a text.
base::Result<RunFacts> read_run_note(std::string_view text);

}  // namespace tutti::report
