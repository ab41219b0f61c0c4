#include "common/plan/stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace tutti::plan {
namespace {

using base::Duration;

// The last sign of life while queries are in flight; nothing when there is nothing to wait for.
std::optional<Duration> last_progress(const PhaseCounters& counters) {
  if (counters.stop_asked || counters.in_flight == 0 || !counters.in_flight_since) {
    return std::nullopt;
  }
  return counters.last_response ? std::max(*counters.last_response, *counters.in_flight_since)
                                : *counters.in_flight_since;
}

}  // namespace

std::optional<Duration> StopRule::next_check(const PhaseCounters& /*counters*/) const {
  return std::nullopt;
}

Decision CountReached::evaluate(const PhaseCounters& counters, Duration /*since_start*/) const {
  if (counters.issued < total_) {
    return {};
  }
  return {Course::kStop, StopCause::kCount, fmt::format("all {} queries are issued", total_)};
}

IssueCap::IssueCap(Duration cap) : cap_(cap) { TUTTI_CHECK(cap.ns > 0); }

Decision IssueCap::evaluate(const PhaseCounters& /*counters*/, Duration since_start) const {
  if (since_start < cap_) {
    return {};
  }
  return {Course::kStop, StopCause::kIssueCap,
          fmt::format("issuing reached its cap of {:.1f} s", cap_.to_seconds())};
}

std::optional<Duration> IssueCap::next_check(const PhaseCounters& /*counters*/) const {
  return cap_;
}

Decision FirstUserDone::evaluate(const PhaseCounters& counters,
                                 base::Duration /*since_start*/) const {
  if (!counters.first_user_done) {
    return {};
  }
  return {Course::kStop, StopCause::kFirstUserDone,
          "a conversation has ended and none is left to begin"};
}

Decision StopAsked::evaluate(const PhaseCounters& counters, Duration /*since_start*/) const {
  if (!counters.stop_asked) {
    return {};
  }
  return {Course::kStop, StopCause::kAsked, "a stop was asked for"};
}

ResponseIdle::ResponseIdle(Duration limit) : limit_(limit) { TUTTI_CHECK(limit.ns > 0); }

Decision ResponseIdle::evaluate(const PhaseCounters& counters, Duration since_start) const {
  const auto progress = last_progress(counters);
  if (!progress || since_start - *progress < limit_) {
    return {};
  }
  return {Course::kFail, StopCause::kResponseIdle,
          fmt::format("EndpointResponseIdleTimeoutError: no response at all for {:.1f} s with {} "
                      "queries in flight; see to the endpoints, or raise "
                      "settings.timeouts.endpoint_response_idle_timeout_s",
                      limit_.to_seconds(), counters.in_flight)};
}

std::optional<Duration> ResponseIdle::next_check(const PhaseCounters& counters) const {
  const auto progress = last_progress(counters);
  if (!progress) {
    return std::nullopt;
  }
  return *progress + limit_;
}

DrainTimeout::DrainTimeout(Duration limit) : limit_(limit) { TUTTI_CHECK(limit.ns > 0); }

Decision DrainTimeout::evaluate(const PhaseCounters& counters, Duration since_start) const {
  if (!counters.draining_since || counters.in_flight == 0 ||
      since_start - *counters.draining_since < limit_) {
    return {};
  }
  return {Course::kFail, StopCause::kDrainTimeout,
          fmt::format("{} queries were still in flight after draining for {:.1f} s",
                      counters.in_flight, limit_.to_seconds())};
}

std::optional<Duration> DrainTimeout::next_check(const PhaseCounters& counters) const {
  if (!counters.draining_since || counters.in_flight == 0) {
    return std::nullopt;
  }
  return *counters.draining_since + limit_;
}

RunTimeout::RunTimeout(Duration limit) : limit_(limit) { TUTTI_CHECK(limit.ns > 0); }

Decision RunTimeout::evaluate(const PhaseCounters& /*counters*/, Duration since_start) const {
  if (since_start < limit_) {
    return {};
  }
  return {Course::kFail, StopCause::kRunTimeout,
          fmt::format("the run did not end within {:.1f} s (settings.timeouts.run_timeout_s)",
                      limit_.to_seconds())};
}

std::optional<Duration> RunTimeout::next_check(const PhaseCounters& /*counters*/) const {
  return limit_;
}

StopRules& StopRules::add(std::unique_ptr<StopRule> rule) {
  TUTTI_CHECK(rule != nullptr);
  rules_.push_back(std::move(rule));
  return *this;
}

Decision StopRules::evaluate(const PhaseCounters& counters, Duration since_start) const {
  Decision best;
  for (const auto& rule : rules_) {
    Decision decision = rule->evaluate(counters, since_start);
    if (decision.course > best.course) {
      best = std::move(decision);
    }
  }
  return best;
}

std::optional<Duration> StopRules::next_check(const PhaseCounters& counters) const {
  std::optional<Duration> earliest;
  for (const auto& rule : rules_) {
    const auto check = rule->next_check(counters);
    if (check && (!earliest || *check < *earliest)) {
      earliest = check;
    }
  }
  return earliest;
}

}  // namespace tutti::plan
