#pragma once

// Tally: what a benchmark keeps of the records it drops: counts, how fast freed slots were filled
// again, and how far the token stamps lie from the server's own. Owned by the driving thread.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "common/wire/record.h"

namespace tutti::bench {

struct Spread {
  std::size_t count = 0;
  double min_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double max_us = 0;
};

// Sorts what it is given. Percentiles are observed values, as in the reports.
inline Spread spread_of(std::vector<std::int64_t>& values_ns) {
  if (values_ns.empty()) {
    return {};
  }
  std::sort(values_ns.begin(), values_ns.end());
  const auto at = [&values_ns](double q) {
    const auto i = static_cast<std::size_t>(q * static_cast<double>(values_ns.size() - 1));
    return static_cast<double>(values_ns[i]) / 1e3;
  };
  return {values_ns.size(), at(0), at(0.5), at(0.99), at(0.999), at(1)};
}

class Tally {
 public:
  explicit Tally(bool stamps) : stamps_(stamps) {}

  // Instants before `from` are not of the window.
  void begin_window(base::Instant from) {
    from_ = from;
    records = chunks = 0;
    refill_ns.clear();
    first_lag_ns.clear();
    later_lag_ns.clear();
  }

  // Records that come later still tell of tokens inside the window.
  void end_window(base::Instant until) { until_ = until; }

  void take(const wire::Record& record) {
    ++records;
    chunks += record.content_events;
    if (record.outcome != wire::Outcome::kOk) {
      ++failed;
      if (first_error.empty()) {
        first_error = record.error_message;
      }
      return;
    }
    // A closed loop's command is due at the instant its slot was freed: at the end of the exchange
    // before. The first one of each slot is due at the phase's start and tells nothing.
    if (record.due_at > from_ && record.sent_at.is_set()) {
      refill_ns.push_back((record.sent_at - record.due_at).ns);
    }
    if (stamps_) {
      take_stamps(record);
    }
  }

  std::uint64_t records = 0;
  std::uint64_t chunks = 0;    // content events of these records
  std::uint64_t failed = 0;    // ever
  std::uint64_t unpaired = 0;  // records whose text is not one server stamp per token stamp, ever
  std::string first_error;
  std::vector<std::int64_t> refill_ns;
  std::vector<std::int64_t> first_lag_ns;
  std::vector<std::int64_t> later_lag_ns;

 private:
  // The server's text is its stamps, one a word; the record has our stamp of each of these words.
  void take_stamps(const wire::Record& record) {
    std::int64_t sent_ns = 0;
    std::string_view rest = record.output.content_rest;
    if (!next_stamp(record.output.content_first, sent_ns)) {
      ++unpaired;
      return;
    }
    note(first_lag_ns, record.first_token_at, sent_ns);
    for (const base::Instant at : record.chunk_at) {
      if (!next_stamp(rest, sent_ns)) {
        ++unpaired;
        return;
      }
      note(later_lag_ns, at, sent_ns);
    }
    unpaired += rest.empty() ? 0U : 1U;
  }

  static bool next_stamp(std::string_view text, std::int64_t& sent_ns, std::size_t& used) {
    const std::size_t from = !text.empty() && text.front() == ' ' ? 1 : 0;
    const auto [end, problem] =
        std::from_chars(text.data() + from, text.data() + text.size(), sent_ns);
    used = static_cast<std::size_t>(end - text.data());
    return problem == std::errc{};
  }
  static bool next_stamp(const std::string& text, std::int64_t& sent_ns) {
    std::size_t used = 0;
    return next_stamp(text, sent_ns, used) && used == text.size();
  }
  static bool next_stamp(std::string_view& text, std::int64_t& sent_ns) {
    std::size_t used = 0;
    const bool found = next_stamp(text, sent_ns, used);
    text.remove_prefix(found ? used : 0);
    return found;
  }

  void note(std::vector<std::int64_t>& to, base::Instant at, std::int64_t sent_ns) const {
    if (at > from_ && at <= until_) {
      to.push_back(at.ns - sent_ns);
    }
  }

  bool stamps_;
  base::Instant from_{};
  base::Instant until_ = base::kFarFuture;
};

}  // namespace tutti::bench
