#pragma once

// Instants and durations in nanoseconds, and the only door to "now". Logic takes an Instant as an
// argument; a Clock is held by mains and event loops alone. Instants of different hosts live on
// different clocks and are only comparable after mapping (coordinator/roster).

#include <compare>
#include <cstdint>

namespace tutti::base {

struct Duration {
  std::int64_t ns = 0;

  static constexpr Duration nanos(std::int64_t n) { return {n}; }
  static constexpr Duration micros(std::int64_t n) { return {n * 1'000}; }
  static constexpr Duration millis(std::int64_t n) { return {n * 1'000'000}; }
  static constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000'000}; }
  static Duration from_seconds(double s) { return {static_cast<std::int64_t>(s * 1e9)}; }
  double to_seconds() const { return static_cast<double>(ns) / 1e9; }

  friend constexpr bool operator==(Duration a, Duration b) { return a.ns == b.ns; }
  friend constexpr auto operator<=>(Duration a, Duration b) { return a.ns <=> b.ns; }
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
  friend constexpr Duration operator*(Duration a, std::int64_t k) { return {a.ns * k}; }
};

// A point on a monotonic clock. 0 means "not there": no real stamp is 0.
struct Instant {
  std::int64_t ns = 0;

  constexpr bool is_set() const { return ns != 0; }
  friend constexpr bool operator==(Instant a, Instant b) { return a.ns == b.ns; }
  friend constexpr auto operator<=>(Instant a, Instant b) { return a.ns <=> b.ns; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
  friend constexpr Instant operator+(Instant a, Duration d) { return {a.ns + d.ns}; }
  friend constexpr Instant operator-(Instant a, Duration d) { return {a.ns - d.ns}; }
};

inline constexpr Instant kFarFuture{INT64_MAX};

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual Instant mono() const = 0;               // CLOCK_MONOTONIC
  virtual std::int64_t wall_unix_ns() const = 0;  // CLOCK_REALTIME; for files people read
};

class SystemClock final : public Clock {
 public:
  Instant mono() const override;
  std::int64_t wall_unix_ns() const override;
};

}  // namespace tutti::base
