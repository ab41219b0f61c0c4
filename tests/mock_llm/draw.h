#pragma once

// Durations and counts that a user may fix or draw: `50ms`, `uniform:20ms:80ms`,
// `lognormal:64:0.5`, `exponential:10ms`. Every request owns one RequestDraws, a counter-based
// sequence keyed by a 64-bit seed; so what a request draws depends on its seed alone, never on what
// its neighbours drew. Pure values; any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tutti::mock_llm {

inline constexpr std::int64_t kDurationMaxNs = 24LL * 3600 * 1'000'000'000;
inline constexpr std::int64_t kCountMax = 1'000'000;

// SplitMix64 (Steele, Lea, Flood 2014) read at position `draws_`: the n-th value is mix(seed +
// n·γ).
class RequestDraws {
 public:
  explicit RequestDraws(std::uint64_t seed, std::uint64_t draws = 0) : seed_(seed), draws_(draws) {}
  std::uint64_t next_u64();
  double next_double();  // uniform in [0, 1), 53 bits

 private:
  std::uint64_t seed_;
  std::uint64_t draws_;
};

enum class Shape : std::uint8_t { kFixed, kUniform, kLognormal, kExponential };
enum class Quantity : std::uint8_t { kDuration, kCount };

// `a` and `b` are in ns for durations: fixed(a) · uniform(a..b) · lognormal(mean a, cv b) ·
// exponential(mean a).
struct Distribution {
  Shape shape = Shape::kFixed;
  Quantity quantity = Quantity::kDuration;
  double a = 0;
  double b = 0;

  // One value, in ns or as a count, within 0 … kDurationMaxNs or kCountMax.
  std::int64_t draw(RequestDraws& draws) const;

  static Distribution fixed_ns(std::int64_t ns);
  static Distribution fixed_count(std::int64_t count);
};

// The error says what is wrong with the text and what would be right.
using DistributionResult = tl::expected<Distribution, std::string>;
DistributionResult parse_distribution(std::string_view text, Quantity quantity);

// "50ms", "1.5s", "200us", "10ns", "2m", "0"; the unit is required for anything but 0.
tl::expected<std::int64_t, std::string> parse_duration_ns(std::string_view text);

}  // namespace tutti::mock_llm
