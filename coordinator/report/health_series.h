#pragma once

// HealthSeries: one agent's health over a run, one row per interval it told of, in bounded memory.
// When the bound is reached, neighbours are merged in pairs and so are all later rows: intervals of
// 2 s, then 4 s, and so on. A merged row keeps the worst of its parts (percentiles are never
// averaged), the sums of what counts, and how long its parts were beyond the limits that forgive,
// by verdict::ClientLimits as they stand; rows of different phases are never merged. Pure; owned by
// the coordinator's main thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/verdict/client_health.h"

namespace tutti::report {

class HealthSeries {
 public:
  static constexpr std::size_t kRowsMax = 4096;  // of one agent: an hour and some at 1 s
  static constexpr std::size_t kRowsMin = 64;
  static constexpr std::size_t kRowsAll = 200'000;  // of all agents of a run: some 60 MB

  explicit HealthSeries(std::size_t rows_max = kRowsMax) : rows_max_(rows_max) {}
  // How many rows each of `agents` may keep.
  static std::size_t rows_max_of(std::size_t agents);

  // In time order. A row that closes no interval is not taken.
  void add(const verdict::HealthRow& row);

  const std::vector<verdict::HealthRow>& rows() const { return rows_; }
  // How many told intervals a full row stands for: 1, 2, 4 …
  std::uint32_t intervals_per_row() const { return per_row_; }

 private:
  void halve();

  std::size_t rows_max_;
  std::vector<verdict::HealthRow> rows_;
  std::uint32_t per_row_ = 1;
};

// Both rows as one: see above.
verdict::HealthRow worse_of(const verdict::HealthRow& a, const verdict::HealthRow& b);

}  // namespace tutti::report
