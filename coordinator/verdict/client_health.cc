#include "coordinator/verdict/client_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tutti::verdict {
namespace {

using base::Duration;

constexpr double kCountingSeen = 0.01;  // of a core: below it nobody feels it

double ms(Duration d) { return d.to_seconds() * 1e3; }

// What every interval is held against. `value` and `limit` are in `unit`.
struct Measure {
  const char* metric;
  const char* unit;
  const char* words;   // what is beyond its limit
  const char* remedy;  // or what it means
  bool forgiving;      // a small part of the time may lie beyond
  double (*value)(const wire::Health&);
  double (*limit)(Duration issue_lag_limit, const ClientLimits&);
};

// The forgiving ones come first, in the order of TimesBeyond.
constexpr std::array<Measure, 6> kMeasures{{
    {"issue_lag_p99", "ms", "p99 of issued − due",
     "requests went out late, which may have shaped the load; the host was busy: free it, or use "
     "more workers or agents",
     true, [](const wire::Health& h) { return ms(h.issue_lag_p99); },
     [](Duration lag, const ClientLimits&) { return ms(lag); }},
    {"cpu_busiest_worker", "% of a core", "CPU of its busiest worker",
     "use more workers or more agents", true,
     [](const wire::Health& h) { return h.cpu_busiest_worker * 100; },
     [](Duration, const ClientLimits& l) { return l.cpu_thread_max * 100; }},
    {"cpu_session", "% of a core", "CPU of its session thread", "use more agents", true,
     [](const wire::Health& h) { return h.cpu_session * 100; },
     [](Duration, const ClientLimits& l) { return l.cpu_thread_max * 100; }},
    {"turn_max", "ms", "longest turn of a worker's loop",
     "the worker stood still, and all that was due on it waited", false,
     [](const wire::Health& h) { return ms(h.turn_max); },
     [](Duration, const ClientLimits& l) { return ms(l.turn_max); }},
    {"session_turn_max", "ms", "longest turn of the session's loop",
     "commands and records waited that long", false,
     [](const wire::Health& h) { return ms(h.session_turn_max); },
     [](Duration, const ClientLimits& l) { return ms(l.turn_max); }},
    {"connect_failures", "queries", "queries without a local port, descriptor or memory",
     "use more source addresses, raise ulimit -n, or use more agents", false,
     [](const wire::Health& h) { return static_cast<double>(h.connect_failures); },
     [](Duration, const ClientLimits& l) { return static_cast<double>(l.connect_failures_max); }},
}};

bool is_cpu(const Measure& measure) {
  return std::string_view(measure.metric).substr(0, 3) == "cpu";
}

bool is_lag(const Measure& measure) { return measure.metric == std::string_view("issue_lag_p99"); }

Duration length(const HealthRow& row) { return row.health.to - row.health.from; }

bool counts(const Measure& measure, const HealthRow& row, const ClientLimits& limits) {
  if (is_lag(measure)) {
    return row.health.issue_lag_count >= limits.issue_lag_count_min;
  }
  return !is_cpu(measure) || length(row) >= limits.cpu_interval_min;
}

// How long `row` was beyond the limit of kMeasures[i]; nothing: it kept it. Of a merged row: exact
// for CPU; of lag at most the time beyond its lowest limit; of the others at most the whole row.
std::optional<Duration> time_beyond(std::size_t i, const HealthRow& row, double limit,
                                    const ClientLimits& limits) {
  const Measure& measure = kMeasures[i];
  if (!counts(measure, row, limits) || measure.value(row.health) <= limit) {
    return std::nullopt;
  }
  if (!measure.forgiving || row.intervals == 1) {
    return length(row);
  }
  return row.beyond[i].ns > 0 ? std::optional(row.beyond[i]) : std::nullopt;
}

std::string number(double value) {
  return std::abs(value) >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

Finding finding(const Measure& measure, double value, double limit) {
  Finding out;
  out.metric = measure.metric;
  out.unit = measure.unit;
  out.value = value;
  out.limit = limit;
  out.text =
      fmt::format("{} {} {} (limit {})", measure.words, number(value), measure.unit, number(limit));
  return out;
}

class ClientJudge {
 public:
  ClientJudge(const ClientFacts& facts, const ClientLimits& limits)
      : facts_(facts), limits_(limits) {
    out_.issue_lag_limit = issue_lag_limit(facts.ttft_p50, limits);
  }

  ClientVerdict finish() {
    for (const ClientAgent& agent : facts_.agents) {
      look_at(agent);
    }
    look_at_in_flight();
    look_at_frontends();
    return std::move(out_);
  }

 private:
  void look_at(const ClientAgent& agent) {
    if (agent.rows.empty()) {
      out_.unseen.push_back(agent.name);
    }
    Duration judged{};
    for (const HealthRow& row : agent.rows) {
      judged = judged + length(row);
    }
    out_.judged = out_.judged + judged;
    for (std::size_t i = 0; i < kMeasures.size(); ++i) {
      look_at(agent, i, judged);
    }
    if (agent.records_lost > limits_.records_lost_max) {
      add(agent.name, {"",
                       "records_lost",
                       "records",
                       static_cast<double>(agent.records_lost),
                       static_cast<double>(limits_.records_lost_max),
                       std::nullopt,
                       {},
                       fmt::format("{} records lost: its recorder was full (limit {})",
                                   agent.records_lost, limits_.records_lost_max)});
    }
    if (agent.clock_error > limits_.clock_error_max) {
      add(agent.name,
          {"",
           "clock_error",
           "ms",
           ms(agent.clock_error),
           ms(limits_.clock_error_max),
           std::nullopt,
           {},
           fmt::format("its clock is known to ± {:.3f} ms only (limit {:.3f} ms); window edges and "
                       "the order of events across agents are that uncertain, TTFT, TPOT and "
                       "latency are not",
                       ms(agent.clock_error), ms(limits_.clock_error_max))});
    }
  }

  void look_at(const ClientAgent& agent, std::size_t i, Duration judged) {
    const Measure& measure = kMeasures[i];
    const double limit = measure.limit(out_.issue_lag_limit, limits_);
    const HealthRow* worst = nullptr;
    Duration beyond{};
    bool merged = false;
    for (const HealthRow& row : agent.rows) {
      const auto time = time_beyond(i, row, limit, limits_);
      if (!time) {
        continue;
      }
      beyond = beyond + *time;
      merged = merged || row.intervals > 1;
      if (worst == nullptr || measure.value(row.health) > measure.value(worst->health)) {
        worst = &row;
      }
    }
    const double share = judged.ns > 0 ? beyond.to_seconds() / judged.to_seconds() : 0;
    const bool in_time = measure.forgiving ? share > limits_.time_beyond_max : worst != nullptr;
    const bool overall = is_lag(measure) && agent.issue_lag_p99 &&
                         agent.issue_lag_count >= limits_.issue_lag_count_min &&
                         ms(*agent.issue_lag_p99) > limit;
    if (!in_time && !overall) {
      return;
    }
    Finding out =
        finding(measure, in_time ? measure.value(worst->health) : ms(*agent.issue_lag_p99), limit);
    if (is_lag(measure) && facts_.latency_p50 && facts_.latency_p50->ns > 0) {
      out.text += fmt::format(", {} % of the median latency of {} ms",
                              number(out.value / ms(*facts_.latency_p50) * 100),
                              number(ms(*facts_.latency_p50)));
    }
    if (in_time) {
      out.at = worst->health.from;
      out.beyond = beyond;
      out.text += fmt::format(", beyond it in {}{:.1f} s of {:.1f} s",
                              merged && !is_cpu(measure) ? "at most " : "", beyond.to_seconds(),
                              judged.to_seconds());
    }
    const bool of_time = is_lag(measure) || is_cpu(measure) || out.unit == "ms";
    if (in_time && of_time && worst->health.cpu_counting >= kCountingSeen) {
      out.text += fmt::format(
          ", while counting tokens took {} % of a core (distributed.token_counting: coordinator "
          "counts after the run)",
          number(worst->health.cpu_counting * 100));
    }
    if (overall) {
      out.text += fmt::format(", {} ms over the whole phase", number(ms(*agent.issue_lag_p99)));
    }
    out.text += fmt::format("; {}", measure.remedy);
    add(agent.name, std::move(out));
  }

  // The loop as a whole; the agent farthest below its share is named.
  void look_at_in_flight() {
    double held = 0;
    double target = 0;
    const ClientAgent* lowest = nullptr;
    const auto share = [](const ClientAgent& a) {
      return *a.mean_in_flight / static_cast<double>(a.slots);
    };
    for (const ClientAgent& agent : facts_.agents) {
      if (agent.slots == 0 || !agent.mean_in_flight) {
        continue;
      }
      held += *agent.mean_in_flight;
      target += static_cast<double>(agent.slots);
      if (lowest == nullptr || share(agent) < share(*lowest)) {
        lowest = &agent;
      }
    }
    const double limit = target * limits_.in_flight_share_min;
    if (lowest == nullptr || held >= limit) {
      return;
    }
    add(lowest->name, {"",
                       "mean_in_flight",
                       "queries",
                       held,
                       limit,
                       std::nullopt,
                       {},
                       fmt::format("{:.2f} queries in flight on the mean of all agents, of {:.0f} "
                                   "(limit {:.2f}); this agent held {:.2f} of {}",
                                   held, target, limit, *lowest->mean_in_flight, lowest->slots)});
  }

  void look_at_frontends() {
    double sum = 0;
    for (const FrontendLoad& frontend : facts_.frontends) {
      sum += frontend.load;
    }
    if (facts_.frontends.size() < 2 || sum <= 0) {
      return;
    }
    const double mean = sum / static_cast<double>(facts_.frontends.size());
    const auto distance = [mean](const FrontendLoad& f) { return std::abs(f.load - mean); };
    const auto farthest = std::max_element(
        facts_.frontends.begin(), facts_.frontends.end(),
        [&](const FrontendLoad& a, const FrontendLoad& b) { return distance(a) < distance(b); });
    const double off = distance(*farthest);
    if (off <= static_cast<double>(facts_.workers) ||
        off <= mean * limits_.frontend_imbalance_max) {
      return;
    }
    add("",
        {"",
         "frontend_imbalance",
         "%",
         off / mean * 100,
         limits_.frontend_imbalance_max * 100,
         std::nullopt,
         {},
         fmt::format("frontend {} had {:.2f} {}, {:.1f} % off the mean of {:.2f} (limit {:g} %)",
                     farthest->url, farthest->load, facts_.load_unit, off / mean * 100, mean,
                     limits_.frontend_imbalance_max * 100)});
  }

  void add(const std::string& agent, Finding finding) {
    finding.agent = agent;
    if (!agent.empty()) {
      finding.text = fmt::format("agent {}: {}", agent, finding.text);
    }
    out_.findings.push_back(std::move(finding));
  }

  const ClientFacts& facts_;
  const ClientLimits& limits_;
  ClientVerdict out_;
};

}  // namespace

Duration issue_lag_limit(const std::optional<Duration>& ttft_p50, const ClientLimits& limits) {
  if (!ttft_p50) {
    return limits.issue_lag_p99_max;
  }
  return std::max(limits.issue_lag_p99_max,
                  Duration{static_cast<std::int64_t>(static_cast<double>(ttft_p50->ns) *
                                                     limits.issue_lag_share_of_ttft_max)});
}

ClientVerdict judge_client(const ClientFacts& facts, const ClientLimits& limits) {
  return ClientJudge(facts, limits).finish();
}

TimesBeyond times_beyond(const HealthRow& row, const ClientLimits& limits) {
  if (row.intervals > 1) {
    return row.beyond;
  }
  TimesBeyond out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double limit = kMeasures[i].limit(limits.issue_lag_p99_max, limits);
    out[i] = time_beyond(i, row, limit, limits).value_or(Duration{});
  }
  return out;
}

std::vector<Finding> broken_in(const HealthRow& row, Duration issue_lag_limit,
                               const ClientLimits& limits) {
  std::vector<Finding> out;
  for (const Measure& measure : kMeasures) {
    const double limit = measure.limit(issue_lag_limit, limits);
    const double value = measure.value(row.health);
    if (counts(measure, row, limits) && value > limit) {
      out.push_back(finding(measure, value, limit));
      out.back().at = row.health.from;
    }
  }
  return out;
}

}  // namespace tutti::verdict
