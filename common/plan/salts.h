#pragma once

// Salts: what makes each warm-up prompt new to a prefix cache. Eight seeded random bytes per issued
// query, in issue order whatever its row; as text "[" + 16 lower-case hex digits + "] " before the
// prompt. Vectors: tests/conformance/warmup.json. In an IssueCommand the first byte sits in the top
// bits, so the number printed as 16 hex digits is the salt's text. One owner, no locks.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/random.h"
#include "common/base/result.h"

namespace tutti::plan {

// "[0123456789abcdef] "
inline constexpr std::size_t kSaltTextSize = 19;
using SaltText = std::array<char, kSaltTextSize>;

SaltText salt_text(std::uint64_t salt);
inline std::string_view view(const SaltText& text) { return {text.data(), text.size()}; }
std::string salt_hex(std::uint64_t salt);

// The salt at the front of `text`, when it begins with one in exactly the form above.
std::optional<std::uint64_t> salt_at_front(std::string_view text);

class Salts {
 public:
  explicit Salts(std::uint64_t seed) : random_(seed) {}
  std::uint64_t next();

 private:
  base::Mt19937 random_;
};

// The three generators of a warm-up phase hang on one setting W: gaps W, order W + 1, salts W + 2.
struct WarmupSeeds {
  std::uint64_t gaps = 0;
  std::uint64_t order = 0;
  std::uint64_t salts = 0;
};
inline constexpr std::uint64_t kWarmupSeedMax = UINT64_MAX - 2;

// Refused (kInput) above kWarmupSeedMax: W + 2 would need a 65th bit, and a wrapped seed would be
// another schedule than the one asked for.
base::Result<WarmupSeeds> warmup_seeds(std::uint64_t warmup_random_seed);

}  // namespace tutti::plan
