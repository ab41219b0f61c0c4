#pragma once

// The parts of report.txt that the reference client does not have: what this client is, the
// verdict, frontends, agents, failures, and how each number was obtained. Private to the report
// folder. Pure.

#include <string>

#include "coordinator/report/report.h"

namespace tutti::report {

// "Client:" and "Verdict:" lines, the end of the summary part.
void put_verdict(std::string& out, const Report& report);

// Everything after the reference's series.
void put_own_sections(std::string& out, const Report& report);

}  // namespace tutti::report
