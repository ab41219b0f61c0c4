#pragma once

// From a multi-turn data set of the config to what a run plays: the conversations read and checked,
// and the trajectories of its warm-up and performance phases. Untimed; reads one file.

#include <memory>

#include "common/base/result.h"
#include "common/data/body_set.h"
#include "common/data/conversations.h"
#include "common/plan/schedule.h"
#include "common/plan/trajectories.h"
#include "common/spec/config.h"
#include "common/wire/messages.h"

namespace tutti::conduct {

// kInput when salts are asked for and a conversation has no system prompt, kSetup when the file
// cannot be used.
base::Result<std::shared_ptr<const data::ConversationSet>> read_conversations(
    const spec::DatasetSpec& wanted);

// The phase's queries are the turns of conversations from here on. A performance phase plays as
// many as the config says, with delays and salts when it says so; a warm-up plays whole ones until
// it has sent `spec.total` turns.
base::Status play(const data::ConversationSet& set, const spec::AgenticInference& wanted,
                  plan::PhaseSpec& spec);

struct Played {
  std::shared_ptr<const data::ConversationSet> conversations;
  std::shared_ptr<const plan::Trajectories> trajectories;
};

// What the performance phase of a run of `config` played, from its data set as it is now: for what
// is known of that run by query numbers alone. Errors as above.
base::Result<Played> play_again(const spec::Config& config);

// What a conversation's turns need on the wire.
void route(const spec::AgenticInference& wanted, wire::TargetSpec& target);

// Renders every sample, in order, with `params`; errors name the sample's place.
base::Status write_turns(const data::ConversationSet& set, const data::BodyParams& params,
                         data::BodySetWriter& writer);

}  // namespace tutti::conduct
