#pragma once

// From an order (config and mode) to everything a run needs before the first agent joins: the data
// set read and checked, bodies rendered, the phases with their schedules' specs, what to talk to.
// Untimed; reads files, writes one (the body set). All that can be wrong with the input is found
// here.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/data/body_set.h"
#include "common/data/conversations.h"
#include "common/data/dataset.h"
#include "common/data/request_body.h"
#include "common/plan/schedule.h"
#include "common/spec/flags.h"
#include "common/wire/messages.h"
#include "coordinator/conduct/dataset_input.h"
#include "coordinator/conduct/punkt_files.h"

namespace tutti::conduct {

struct PhaseInput {
  std::string name;
  plan::PhaseSpec spec;
  std::optional<base::Duration> issue_cap;
  std::optional<base::Duration> drain_timeout;
  bool ends_with_first_user = false;  // as RunPhase
};

struct RunInput {
  data::Dataset dataset;  // of warm-up and performance; no rows in accuracy-only runs …
  std::shared_ptr<const data::ConversationSet> conversations;  // … nor when it is of these
  Punkt punkt = nullptr;      // what ROUGE finds sentences by, where it is asked for and here
  bool scores_turns = false;  // of them, in the performance phase
  std::string first_mark;     // of a conversation's first pass; empty: none
  std::vector<AccuracyInput> accuracy;
  data::BodySet bodies;
  std::string bodies_path;  // to be removed when the run is over
  std::vector<PhaseInput> phases;
  wire::TargetSpec target;
  std::optional<std::uint64_t> connections_max;   // over all agents; nothing: as many as fit
  std::optional<std::uint64_t> connections_warm;  // over all agents; nothing: as many as slots
  std::vector<std::string> notes;                 // for the log

  // Rows of warm-up and performance.
  std::uint32_t measured_rows() const;
  // The row behind a sample of any phase (their data sets follow each other); null: there is none,
  // or it is one of `conversations`.
  const data::Row* row(base::SampleIndex sample) const;
};

// `folder` is the run folder; it exists. Errors carry the exit code of the reference's table.
// `local_seconds`: since 1970 on the local clock, for prompts that tell the date.
base::Result<RunInput> prepare(const spec::Order& order, const std::string& folder,
                               std::int64_t local_seconds);

// Accuracy-only runs ask one query at a time, as the reference does: rewrites the config so that it
// says so. Sentences for the log; nothing when there is nothing to rewrite.
std::vector<std::string> force_single_stream(spec::Config& config);

// The target alone, for a run of one prompt (`probe`).
wire::TargetSpec target_of(const spec::Config& config);

// Renders every row into `path`.
base::Result<data::BodySet> write_bodies(const data::Dataset& dataset,
                                         const data::BodyParams& params, const std::string& path);

}  // namespace tutti::conduct
