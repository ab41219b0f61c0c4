#include "common/plan/schedule.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/check.h"

namespace tutti::plan {
namespace {

std::optional<PoissonArrivals> arrivals_of(const PhaseSpec& spec) {
  if (spec.pacing != base::Pacing::kTimed) {
    return std::nullopt;
  }
  return PoissonArrivals(spec.target_qps, spec.gap_seed, spec.gaps_before);
}

const PhaseSpec& checked(const PhaseSpec& spec) {
  TUTTI_CHECK(check(spec).empty());
  return spec;
}

}  // namespace

base::Problems check(const PhaseSpec& spec) {
  base::Problems out;
  const auto refuse = [&out](const char* field, std::string value, const char* remedy) {
    out.push_back({"phase", field, std::move(value), remedy});
  };
  if (spec.total == 0) {
    refuse("total", "0", "a phase issues at least one query");
  }
  if (spec.dataset_rows == 0) {
    refuse("dataset_rows", "0", "the data set must have at least one row");
  }
  if (spec.first_row > UINT32_MAX - spec.dataset_rows) {
    refuse("first_row", fmt::format("{}", spec.first_row), "the data sets have too many rows");
  }
  if (spec.order == OrderKind::kSingle && spec.single_row >= spec.dataset_rows) {
    refuse("single_row", fmt::format("{}", spec.single_row), "must be a row of the data set");
  }
  if (spec.pacing == base::Pacing::kTimed &&
      !(std::isfinite(spec.target_qps) && spec.target_qps > 0.0)) {
    refuse("target_qps", fmt::format("{}", spec.target_qps), "must be a finite rate above 0");
  }
  if (spec.pacing == base::Pacing::kClosedLoop && spec.concurrency == 0) {
    refuse("concurrency", "0", "a closed loop needs at least one query in flight");
  }
  if (spec.trajectories != nullptr) {
    if (spec.pacing != base::Pacing::kClosedLoop || spec.salted) {
      refuse("trajectories", fmt::format("{}", spec.trajectories->count()),
             "they are played in a closed loop, and have marks instead of salts");
    }
    if (spec.total != spec.trajectories->queries()) {
      refuse("total", fmt::format("{}", spec.total), "must be the number of all turns");
    }
  }
  return out;
}

Schedule::Schedule(const PhaseSpec& spec)
    : spec_(checked(spec)),
      order_(spec.order, spec.dataset_rows, spec.order_seed, spec.single_row),
      arrivals_(arrivals_of(spec)) {
  if (spec.salted) {
    salts_.emplace(spec.salt_seed);
  }
}

std::optional<base::IssueCommand> Schedule::next() {
  if (done()) {
    return std::nullopt;
  }
  if (spec_.trajectories != nullptr) {
    base::IssueCommand turn = spec_.trajectories->command(drawn_++);
    turn.sample += spec_.first_row;
    return turn;
  }
  base::IssueCommand command;
  command.seq = drawn_++;
  command.sample = spec_.first_row + order_.next();
  if (arrivals_) {
    arrivals_->next_gap_ns();
    command.due_offset = arrivals_->due_offset();
  }
  if (salts_) {
    command.salted = true;
    command.salt = salts_->next();
  }
  return command;
}

std::size_t Schedule::take(std::size_t most, std::vector<base::IssueCommand>& out) {
  std::size_t taken = 0;
  while (taken < most) {
    const auto command = next();
    if (!command) {
      break;
    }
    out.push_back(*command);
    ++taken;
  }
  return taken;
}

std::uint64_t gaps_drawn(const PhaseSpec& spec, base::Seq issued) {
  return spec.pacing == base::Pacing::kTimed ? issued + 1 : 0;
}

}  // namespace tutti::plan
