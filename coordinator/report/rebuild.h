#pragma once

// Rebuilding a run from the spools of its agents when its coordinator was lost: survey_spools()
// learns which run they are of and what its agents told, rebuild() merges the batches through the
// ledger, so that the same spool given twice changes nothing. What nobody can know any more is said
// in RunFacts::rebuilt, never guessed. One owner.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "common/base/result.h"
#include "common/wire/messages.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

// What one agent's spool tells beside its records.
struct SpooledAgent {
  std::optional<wire::Hello> hello;
  std::uint64_t batches = 0;                       // different ones
  std::uint64_t newest = 0;                        // batch number
  std::map<std::uint32_t, wire::ArmPhase> armed;   // by phase
  std::map<std::uint32_t, wire::Drained> drained;  // by phase, the last word
  std::string last_word;                           // why it ended; empty: none is here
};

struct SpoolSurvey {
  RunFacts planned;  // read_run_note()
  std::map<std::uint32_t, SpooledAgent> agents;
  std::vector<std::string> paths;
  std::vector<std::string> damage;  // sentences
};

// `paths`: spool folders or files. `run`: its id in hex, or empty when they are of one run only.
// kInput, with all that was found: unreadable, nothing there, several runs, none of that id.
base::Result<SpoolSurvey> survey_spools(const std::vector<std::string>& paths,
                                        const std::string& run);

struct Rebuilt {
  RunFacts facts;  // state kInterrupted; `rebuilt` says what is known and what is not
  ledger::Ledger ledger;
};

// `folder` is the run folder to be; it exists.
base::Result<Rebuilt> rebuild(const SpoolSurvey& survey, const std::string& folder);

}  // namespace tutti::report
