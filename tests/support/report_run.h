#pragma once

// A small made-up run for the tests of ledger and report: two agents on clocks of their own, a
// warm-up phase, a performance phase, and whatever records a test asks for. Header only; one
// thread.

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report_run {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-test-XXXXXX").string();
    TUTTI_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "w0 w1 … " with n words.
inline std::string words(std::int64_t n) {
  std::string out;
  for (std::int64_t i = 0; i < n; ++i) {
    out += (i == 0 ? "w" : " w") + std::to_string(i);
  }
  return out;
}

inline std::int64_t count_words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::int64_t n = 0;
  for (std::string word; in >> word;) {
    ++n;
  }
  return n;
}

class WordPrompts : public report::PromptSource {
 public:
  void prompt(std::uint32_t, base::Seq, base::SampleIndex sample,
              report::Prompt& out) const override {
    out = {};
    out.kind = report::Prompt::Kind::kText;
    out.value = words(sample % 5 + 1);
  }
};

inline constexpr std::int64_t kStart = 1'000'000'000'000;  // coordinator's clock
inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kOffset[2] = {-250'000'000'000, 731'000'000'000};

// A successful streamed reply of `tokens` words; instants in ms after kStart, on agent's own clock.
inline wire::Record ok_record(std::uint32_t agent, std::uint16_t phase, base::Seq seq,
                              std::int64_t issued_ms, std::int64_t first_ms, std::int64_t done_ms,
                              std::int32_t tokens) {
  const auto at = [&](std::int64_t ms) {
    return base::Instant{kStart + ms * kMs - kOffset[agent]};
  };
  wire::Record out;
  out.seq = seq;
  out.phase = phase;
  out.sample = static_cast<base::SampleIndex>(seq % 10);
  out.frontend = static_cast<std::uint16_t>(seq % 2);
  out.finish_reason = wire::FinishReason::kStop;
  out.http_status = 200;
  out.streamed = true;
  out.connection_reused = seq >= 2;
  out.due_at = at(issued_ms) - base::Duration::micros(20);
  out.issued_at = at(issued_ms);
  out.sent_at = at(issued_ms) + base::Duration::micros(150);
  out.first_byte_at = at(first_ms) - base::Duration::micros(10);
  out.first_token_at = at(first_ms);
  out.last_token_at = at(done_ms) - base::Duration::micros(5);
  out.done_at = at(done_ms);
  out.content_events = static_cast<std::uint32_t>(tokens);
  out.prompt_tokens = static_cast<std::int32_t>(out.sample % 5 + 1);
  out.completion_tokens = tokens;
  out.output.has_content = true;
  out.output.content_first = "w0";
  out.output.has_rest = tokens > 1;
  if (tokens > 1) {
    out.output.content_rest = words(tokens).substr(2);
  }
  return out;
}

inline wire::Record failed_record(std::uint32_t agent, std::uint16_t phase, base::Seq seq,
                                  std::int64_t issued_ms, std::int64_t done_ms,
                                  wire::Failure failure, std::string message) {
  wire::Record out = ok_record(agent, phase, seq, issued_ms, issued_ms, done_ms, 1);
  out.outcome = wire::Outcome::kFailed;
  out.failure = failure;
  out.finish_reason = wire::FinishReason::kNone;
  out.http_status = failure == wire::Failure::kHttpStatus ? 503 : 0;
  out.streamed = false;
  out.first_token_at = {};
  out.last_token_at = {};
  out.prompt_tokens = -1;
  out.completion_tokens = -1;
  out.output = {};
  out.error_message = std::move(message);
  return out;
}

inline ledger::Ledger open_ledger(const TempFolder& folder) {
  auto opened = ledger::Ledger::open(folder.path());
  TUTTI_CHECK(opened.has_value());
  for (std::uint32_t agent = 0; agent < 2; ++agent) {
    ledger::ClockMap clock{base::Duration{kOffset[agent]}, base::Duration::micros(40)};
    clock.exchanges = 27;
    clock.drift_error = 12e-6;
    for (const std::int64_t ms : {0, 1000, 2000}) {
      clock.knots.push_back({base::Instant{kStart + ms * kMs} - clock.offset, clock.offset,
                             base::Duration::micros(30 + ms / 200)});
    }
    opened->set_clock(agent, std::move(clock));
  }
  return std::move(*opened);
}

inline report::RunFacts facts() {
  report::RunFacts out;
  out.run = {0x0123456789ABCDEFULL, 0xFEDCBA9876543210ULL};
  out.version = "9.9.9";
  out.started_wall_ns = 1'790'935'200'123'456'789;  // 2026-10-02T10:00:00.123456789Z
  out.started_at = base::Instant{kStart};
  out.ended_at = base::Instant{kStart + 2000 * kMs};
  out.config.load_pattern = {"concurrency", std::nullopt, 4, true};
  out.config.warmup = {true, 2, true, true, 42};
  out.config.endpoints = {"http://a:8000", "http://b:8000"};
  out.phases = {{"warmup", base::PhaseKind::kWarmup, base::Instant{kStart + 10 * kMs},
                 base::Instant{kStart + 90 * kMs}, 2},
                {"performance", base::PhaseKind::kPerformance, base::Instant{kStart + 100 * kMs},
                 base::Instant{kStart + 1900 * kMs}, 0}};
  for (std::uint32_t agent = 0; agent < 2; ++agent) {
    report::AgentFacts it;
    it.name = agent == 0 ? "one" : "two";
    it.host = "host-" + it.name;
    it.version = "9.9.9";
    it.workers = 2;
    it.slots = 2;
    it.clock_rtt = base::Duration::micros(80);
    out.agents.push_back(it);
  }
  return out;
}

// The gaps an agent would have counted had each reply's events come evenly spaced.
inline std::vector<wire::PhaseGaps> even_gaps(const std::vector<wire::Record>& records) {
  std::vector<wire::PhaseGaps> out;
  for (const wire::Record& record : records) {
    if (!record.streamed || record.content_events < 2 || !record.chunk_at.empty()) {
      continue;
    }
    const std::int64_t gap = (record.last_token_at - record.first_token_at).ns /
                             (std::int64_t{record.content_events} - 1);
    out.push_back({record.phase,
                   {{static_cast<std::uint16_t>(stats::LiveHistogram::cell_of(gap)),
                     record.content_events - 1}}});
  }
  return out;
}

// Accepts the records as one batch of `agent`.
inline void accept(ledger::Ledger& ledger, std::uint32_t agent, std::uint64_t number,
                   std::vector<wire::Record> records) {
  wire::RecordBatch batch;
  batch.number = number;
  batch.gaps = even_gaps(records);
  batch.records = std::move(records);
  TUTTI_CHECK(ledger.accept(agent, batch).has_value());
}

// The warm-up of facts(): two good replies, one per agent.
inline void accept_warmup(ledger::Ledger& ledger) {
  accept(ledger, 0, 1, {ok_record(0, 0, 0, 11, 30, 60, 3)});
  accept(ledger, 1, 1, {ok_record(1, 0, 1, 12, 31, 61, 3)});
}

// A run of 40 performance requests with three kinds of failure; fills in what was issued.
inline void accept_mixed(ledger::Ledger& ledger, report::RunFacts& facts) {
  accept_warmup(ledger);
  std::vector<wire::Record> of[2];
  for (base::Seq seq = 0; seq < 40; ++seq) {
    const auto agent = static_cast<std::uint32_t>(seq % 3 == 0 ? 1 : 0);
    const auto i = static_cast<std::int64_t>(seq);
    const std::int64_t issued = 100 + i * 40;
    if (seq == 7 || seq == 8) {
      of[agent].push_back(failed_record(agent, 1, seq, issued, issued + 3,
                                        wire::Failure::kHttpStatus, "overloaded"));
    } else if (seq == 21) {
      of[agent].push_back(failed_record(agent, 1, seq, issued, issued + 90, wire::Failure::kReset,
                                        "connection reset by peer"));
    } else {
      of[agent].push_back(ok_record(agent, 1, seq, issued, issued + 10 + i % 7,
                                    issued + 60 + 2 * (i % 11),
                                    static_cast<std::int32_t>(1 + i % 9)));
    }
  }
  accept(ledger, 0, 2, of[0]);
  accept(ledger, 1, 2, of[1]);
  facts.phases[1].issued = 40;
}

}  // namespace tutti::report_run
