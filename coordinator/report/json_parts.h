#pragma once

// What the sources that put result_summary.json together have of each other. Private to the report
// folder. Pure.

#include <nlohmann/json_fwd.hpp>

#include "coordinator/report/report.h"

namespace tutti::report {

using Json = nlohmann::ordered_json;

// Non-finite doubles become null, as JSON has no word for them.
Json finite(double value);

// One row for each kind of failure.
Json failures_json(const Report& report);
// Agents, endpoints, phases, and whether the client was the bottleneck.
Json distributed_json(const Report& report);

}  // namespace tutti::report
