#include "coordinator/report/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/report/event_lines.h"
#include "coordinator/report/ledger_rows.h"

namespace tutti::report {
namespace {

constexpr std::size_t kFlushAt = 1U << 20U;

struct Mark {
  base::Instant at{};
  std::string_view type;
};

std::vector<Mark> marks_of(const RunFacts& facts) {
  std::vector<Mark> marks{{facts.started_at, "session.started"}};
  for (const PhaseFacts& phase : facts.phases) {
    if (phase.kind == base::PhaseKind::kPerformance && phase.start_at.is_set()) {
      marks.push_back({phase.start_at, "session.start_performance_tracking"});
      const base::Instant end = phase.stop_at.is_set() ? phase.stop_at : facts.ended_at;
      marks.push_back({phase.tracked_until.is_set() ? std::min(phase.tracked_until, end) : end,
                       "session.stop_performance_tracking"});
    }
  }
  return marks;
}

// What comes next of a query that was issued: one entry per query in the queue at a time, so its
// events keep their order whatever their stamps say.
struct Next {
  base::Instant key{};      // where in the file
  std::uint32_t order = 0;  // of issue: breaks ties
  std::uint32_t stage = 0;  // 0: first chunk; n: n-th chunk after it; kEnd
};
constexpr std::uint32_t kEnd = UINT32_MAX;

struct Later {
  bool operator()(const Next& a, const Next& b) const {
    return a.key != b.key ? a.key > b.key : a.order > b.order;
  }
};

class EventWriter {
 public:
  EventWriter(const RunFacts& facts, const ledger::Ledger& ledger, const PromptSource& prompts,
              const std::function<void(std::string_view)>& sink)
      : facts_(facts), ledger_(ledger), prompts_(prompts), sink_(sink), lines_(buffer_) {
    std::uint32_t first = 0;
    for (const AgentFacts& agent : facts.agents) {
      first_worker_.push_back(first);
      first += agent.workers;
    }
  }

  base::Status run() {
    sort_by_issue();
    const std::vector<Mark> marks = marks_of(facts_);
    std::size_t mark = 0;
    std::size_t issue = 0;
    while (mark < marks.size() || issue < order_.size() || !queue_.empty()) {
      const base::Instant mark_at = mark < marks.size() ? marks[mark].at : base::kFarFuture;
      const base::Instant issue_at =
          issue < order_.size() ? issue_key(fact_of(issue)) : base::kFarFuture;
      const base::Instant next_at = queue_.empty() ? base::kFarFuture : queue_.top().key;
      if (mark < marks.size() && mark_at <= issue_at && mark_at <= next_at) {
        lines_.session(marks[mark].type, mark_at);
        ++mark;
      } else if (issue < order_.size() &&
                 issue_at < next_at) {  // a turn ends before the next begins
        if (auto done = write_issued(static_cast<std::uint32_t>(issue)); !done) {
          return done;
        }
        ++issue;
      } else if (auto done = write_next(); !done) {
        return done;
      }
      flush_when(kFlushAt);
    }
    if (facts_.state == RunState::kInterrupted) {
      lines_.session("session.interrupted", facts_.ended_at);
    }
    lines_.session("session.ended", facts_.ended_at);
    flush_when(1);
    return {};
  }

 private:
  const ledger::Fact& fact_of(std::size_t order) const { return ledger_.fact(order_[order]); }

  // A query belongs between the marks of its phase even when the clock error says otherwise.
  base::Instant issue_key(const ledger::Fact& fact) const {
    const base::Instant at = issued_at(ledger_, fact);
    if (fact.phase >= facts_.phases.size()) {
      return at;
    }
    const PhaseFacts& phase = facts_.phases[fact.phase];
    const base::Instant stop = phase.stop_at.is_set() ? phase.stop_at : facts_.ended_at;
    const base::Instant last = std::max(phase.start_at, stop - base::Duration{1});
    return std::clamp(at, phase.start_at, last);
  }

  void sort_by_issue() {
    order_.resize(ledger_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      order_[i] = static_cast<std::uint32_t>(i);
    }
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      const ledger::Fact& left = ledger_.fact(a);
      const ledger::Fact& right = ledger_.fact(b);
      const base::Instant left_at = issue_key(left);
      const base::Instant right_at = issue_key(right);
      if (left_at != right_at) {
        return left_at < right_at;
      }
      return left.phase != right.phase ? left.phase < right.phase : left.seq < right.seq;
    });
  }

  std::string query_of(const ledger::Fact& fact) const {
    return base::query_id(facts_.run, fact.phase, fact.seq);
  }

  base::Status write_issued(std::uint32_t order) {
    const ledger::Fact& fact = fact_of(order);
    if (fact.failure == wire::Failure::kTurnSkipped) {
      prompt_ = {};
    } else {
      prompts_.prompt(fact.phase, fact.seq, fact.sample, prompt_);
    }
    name_turn(fact);
    lines_.issued(query_of(fact), issued_at(ledger_, fact), prompt_);
    const base::Instant key = issue_key(fact);
    if (!has_first_chunk(fact)) {
      push_end(order, key);
      return {};
    }
    if (facts_.config.stream_all_chunks) {
      if (auto read = ledger_.texts(fact, texts_); !read) {
        return read;
      }
      if (!texts_.chunk_at.empty()) {
        chunks_[order] = texts_.chunk_at;
      }
    }
    const base::Instant at = ledger_.to_coordinator(fact, fact.first_token_at);
    queue_.push({std::max(key, at), order, 0});
    return {};
  }

  void push_end(std::uint32_t order, base::Instant not_before) {
    const ledger::Fact& fact = fact_of(order);
    const base::Instant at = ledger_.to_coordinator(fact, fact.done_at);
    queue_.push({std::max(not_before, at), order, kEnd});
  }

  base::Status write_next() {
    const Next next = queue_.top();
    queue_.pop();
    const ledger::Fact& fact = fact_of(next.order);
    if (next.stage == kEnd) {
      return write_end(fact);
    }
    const auto chunks = chunks_.find(next.order);
    base::Instant at = fact.first_token_at;
    if (next.stage > 0) {
      at = chunks->second[next.stage - 1];
    }
    name_turn(fact);
    lines_.chunk(query_of(fact), ledger_.to_coordinator(fact, at), next.stage == 0);
    if (chunks != chunks_.end() && next.stage < chunks->second.size()) {
      const base::Instant later = ledger_.to_coordinator(fact, chunks->second[next.stage]);
      queue_.push({std::max(next.key, later), next.order, next.stage + 1});
      return {};
    }
    if (chunks != chunks_.end()) {
      chunks_.erase(chunks);
    }
    push_end(next.order, next.key);
    return {};
  }

  base::Status write_end(const ledger::Fact& fact) {
    const bool warmup = fact.phase < facts_.phases.size() &&
                        facts_.phases[fact.phase].kind == base::PhaseKind::kWarmup;
    if (warmup && fact.ok()) {
      return {};
    }
    if (auto read = ledger_.texts(fact, texts_); !read) {
      return read;
    }
    const std::string query = query_of(fact);
    const base::Instant at = ledger_.to_coordinator(fact, fact.done_at);
    name_turn(fact);
    name_cause(fact);
    if (!fact.ok()) {
      lines_.error(query, at, fact, texts_);
    }
    if (!warmup) {
      const std::uint32_t first = fact.agent < first_worker_.size() ? first_worker_[fact.agent] : 0;
      lines_.complete(query, at, fact, texts_, first + fact.worker);
    }
    return {};
  }

  void name_turn(const ledger::Fact& fact) {
    prompts_.turn(fact.phase, fact.seq, turn_);
    lines_.set_turn(turn_);
  }

  // An agent knows the query whose turn timed out by its number, the files by its id.
  void name_cause(const ledger::Fact& fact) {
    constexpr std::string_view kBefore = "(query=";
    std::string& text = texts_.error_message;
    const std::size_t at = text.find(kBefore);
    base::Seq seq = 0;
    if (fact.failure == wire::Failure::kTurnSkipped && at != std::string::npos) {
      const char* const digits = text.data() + at + kBefore.size();
      const auto read = std::from_chars(digits, text.data() + text.size(), seq);
      if (read.ec == std::errc()) {
        text = text.substr(0, at) +
               fmt::format("(query={})", base::query_id(facts_.run, fact.phase, seq));
      }
    }
  }

  void flush_when(std::size_t at_least) {
    if (buffer_.size() >= at_least) {
      sink_(buffer_);
      buffer_.clear();
    }
  }

  const RunFacts& facts_;
  const ledger::Ledger& ledger_;
  const PromptSource& prompts_;
  const std::function<void(std::string_view)>& sink_;
  std::string buffer_;
  EventLines lines_;
  std::vector<std::uint32_t> first_worker_;  // global number of each agent's worker 0
  std::vector<std::uint32_t> order_;         // facts by issue
  std::priority_queue<Next, std::vector<Next>, Later> queue_;
  std::unordered_map<std::uint32_t, std::vector<base::Instant>> chunks_;  // of queries in flight
  ledger::Texts texts_;
  Prompt prompt_;
  TurnName turn_;
};

}  // namespace

base::Status write_events(const RunFacts& facts, const ledger::Ledger& ledger,
                          const PromptSource& prompts,
                          const std::function<void(std::string_view)>& sink) {
  return EventWriter(facts, ledger, prompts, sink).run();
}

}  // namespace tutti::report
