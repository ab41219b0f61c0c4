#include "coordinator/conduct/conversation_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/plan/trajectories.h"
#include "common/spec/read.h"
#include "coordinator/conduct/row_choice.h"

namespace tutti::conduct {
namespace {

using base::ExitCode;

std::shared_ptr<const plan::Conversations> turns_of(const data::ConversationSet& set) {
  auto out = std::make_shared<plan::Conversations>();
  for (const data::Conversation& conversation : set.conversations()) {
    plan::Conversation made;
    made.id = conversation.id;
    for (const base::SampleIndex sample : conversation.samples) {
      const data::ClientTurn& turn = set.samples()[sample];
      made.turns.push_back({sample, turn.delay, turn.row + 1});
    }
    out->push_back(std::move(made));
  }
  return out;
}

}  // namespace

base::Result<std::shared_ptr<const data::ConversationSet>> read_conversations(
    const spec::DatasetSpec& wanted) {
  const auto chosen = choose_rows(wanted);
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  if (chosen->pick || chosen->random) {
    return base::fail(ExitCode::kInput,
                      fmt::format("'{}' is a predefined data set of single requests: leave "
                                  "agentic_inference out, or name a file of conversations",
                                  wanted.name));
  }
  auto loaded = data::ConversationSet::load(chosen->file);
  if (!loaded) {
    return base::fail(ExitCode::kSetup,
                      "Failed to load dataset:\n" + spec::to_text(loaded.error()));
  }
  if (wanted.agentic_inference.enable_salt) {
    if (const auto problems = loaded->without_system(); !problems.empty()) {
      return base::fail(ExitCode::kInput,
                        "agentic_inference.enable_salt needs a system prompt in every "
                        "conversation:\n" +
                            spec::to_text(problems));
    }
    loaded->mark_systems(plan::salted_rest);
  }
  return std::make_shared<const data::ConversationSet>(std::move(*loaded));
}

base::Status play(const data::ConversationSet& set, const spec::AgenticInference& wanted,
                  plan::PhaseSpec& spec) {
  plan::TrajectorySpec asked;
  asked.order_seed = spec.order_seed;
  asked.delayed = wanted.inject_tool_delay;
  asked.salted = wanted.enable_salt;
  if (spec.kind == base::PhaseKind::kWarmup) {
    asked.queries_max = spec.total;
  } else {
    asked.count = static_cast<std::uint64_t>(wanted.num_trajectories_to_issue.value_or(0));
  }
  auto made = plan::Trajectories::make(turns_of(set), asked);
  if (!made) {
    return tl::unexpected(made.error());
  }
  spec.total = (*made)->queries();
  spec.trajectories = std::move(*made);
  return {};
}

base::Result<Played> play_again(const spec::Config& config) {
  const auto found = std::find_if(
      config.datasets.begin(), config.datasets.end(), [](const spec::DatasetSpec& dataset) {
        return dataset.type == spec::DatasetType::kPerformance && dataset.agentic_inference.present;
      });
  if (found == config.datasets.end()) {
    return base::fail(ExitCode::kInput, "the config has no performance data set of conversations");
  }
  auto set = read_conversations(*found);
  if (!set) {
    return tl::unexpected(set.error());
  }
  plan::PhaseSpec spec;
  spec.kind = base::PhaseKind::kPerformance;
  spec.order_seed = config.settings.runtime.dataloader_random_seed;
  if (auto status = play(**set, found->agentic_inference, spec); !status) {
    return tl::unexpected(status.error());
  }
  return Played{std::move(*set), std::move(spec.trajectories)};
}

void route(const spec::AgenticInference& wanted, wire::TargetSpec& target) {
  target.routing_headers = wanted.routing_headers;
  target.turn_timeout = base::Duration::from_seconds(wanted.turn_timeout_s);
}

base::Status write_turns(const data::ConversationSet& set, const data::BodyParams& params,
                         data::BodySetWriter& writer) {
  data::RenderedBody body;
  const auto count = static_cast<base::SampleIndex>(set.samples().size());
  for (base::SampleIndex sample = 0; sample < count; ++sample) {
    if (const std::string why = set.why_not_sendable(sample, params); !why.empty()) {
      return base::fail(ExitCode::kSetup, fmt::format("{}: {}", set.where(sample), why));
    }
    set.render(sample, params, body);
    if (auto status = writer.add(body.bytes, body.splice); !status) {
      return base::fail(status.error().code,
                        fmt::format("{}: {}", set.where(sample), status.error().message));
    }
  }
  return {};
}

}  // namespace tutti::conduct
