#include "common/plan/trajectories.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/blake2b.h"
#include "common/base/check.h"
#include "common/plan/order.h"

namespace tutti::plan {
namespace {

constexpr std::size_t kMarkBytes = 2;
constexpr base::Seq kQueriesMax = UINT32_MAX - 1;  // what a ledger holds

}  // namespace

base::Result<std::shared_ptr<const Trajectories>> Trajectories::make(
    std::shared_ptr<const Conversations> conversations, const TrajectorySpec& spec) {
  const std::size_t n = conversations->size();
  const std::uint64_t count = spec.count > 0 ? spec.count : n;
  const bool whole = std::all_of(conversations->begin(), conversations->end(), [](const auto& one) {
    return !one.turns.empty() && one.turns.size() <= kTurnsMax;
  });
  if (n == 0 || !whole || spec.queries_max == base::Seq{0}) {
    return base::fail(
        base::ExitCode::kInput,
        fmt::format("there is nothing to play: a phase needs conversations of 1 to {} "
                    "turns and at least one query",
                    kTurnsMax));
  }
  if (!spec.queries_max && count > kTrajectoriesMax) {
    return base::fail(base::ExitCode::kInput,
                      fmt::format("num_trajectories_to_issue: {} is above {}; ask for fewer", count,
                                  kTrajectoriesMax));
  }
  std::shared_ptr<Trajectories> made(new Trajectories());
  SampleOrder order(OrderKind::kWithoutReplacement, static_cast<std::uint32_t>(n), spec.order_seed);
  made->first_.push_back(0);
  const base::Seq most = spec.queries_max.value_or(kQueriesMax + 1);
  while (made->first_.back() < most && (spec.queries_max || made->count() < count)) {
    const std::uint32_t next = order.next();
    const base::Seq end = made->first_.back() + (*conversations)[next].turns.size();
    made->conversation_.push_back(next);
    made->first_.push_back(std::min(end, most));
  }
  if (made->queries() > kQueriesMax || made->count() > kTrajectoriesMax) {
    return base::fail(base::ExitCode::kInput,
                      fmt::format("the conversations have more than {} turns in all; ask for fewer "
                                  "with num_trajectories_to_issue",
                                  kQueriesMax));
  }
  made->conversations_ = std::move(conversations);
  made->salted_ = spec.salted;
  made->delayed_ = spec.delayed;
  return std::shared_ptr<const Trajectories>(std::move(made));
}

Trajectories::Place Trajectories::place_of(base::Seq seq) const {
  TUTTI_CHECK(seq < queries());
  const auto after = std::upper_bound(first_.begin(), first_.end(), seq);
  const auto k = static_cast<std::uint64_t>(after - first_.begin() - 1);
  return {k, static_cast<std::uint32_t>(seq - first_[k])};
}

std::string Trajectories::logical_id(std::uint64_t k) const {
  const std::uint64_t times = pass(k);
  return times == 1 ? conversation(k).id : fmt::format("{}__repeat_{}", conversation(k).id, times);
}

base::IssueCommand Trajectories::command(base::Seq seq) const {
  const Place place = place_of(seq);
  const Turn& turn = conversation(place.trajectory).turns[place.turn];
  base::IssueCommand command;
  command.seq = seq;
  command.sample = turn.sample;
  if (delayed_ && place.turn > 0) {
    command.due_offset = turn.delay;
  }
  if (salted_) {
    command.salted = true;
    command.salt = pass_mark(pass(place.trajectory));
  }
  return command;
}

std::uint64_t pass_mark(std::uint64_t pass) {
  return std::stoull(base::blake2b_hex(fmt::format("{}", pass), kMarkBytes), nullptr, 16);
}

std::string conversation_mark(const std::string& id) { return base::blake2b_hex(id, kMarkBytes); }

std::string mark_text(std::uint64_t mark) { return fmt::format("[salt: {:04x}", mark); }

std::string salted_rest(const std::string& id, const std::string& content) {
  return fmt::format("]\n\n{}\n\n[salt: {}]", content, conversation_mark(id));
}

}  // namespace tutti::plan
