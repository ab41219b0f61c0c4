#include "common/plan/salts.h"

#include <fmt/format.h>

namespace tutti::plan {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kHexSize = 16;

}  // namespace

SaltText salt_text(std::uint64_t salt) {
  SaltText out{};
  out[0] = '[';
  for (std::size_t i = 0; i < kHexSize; ++i) {
    out[1 + i] = kDigits[(salt >> (60 - 4 * i)) & 0xF];
  }
  out[17] = ']';
  out[18] = ' ';
  return out;
}

std::string salt_hex(std::uint64_t salt) {
  const SaltText text = salt_text(salt);
  return std::string(view(text).substr(1, kHexSize));
}

std::optional<std::uint64_t> salt_at_front(std::string_view text) {
  if (text.size() < kSaltTextSize || text[0] != '[' || text[17] != ']' || text[18] != ' ') {
    return std::nullopt;
  }
  std::uint64_t salt = 0;
  for (const char c : text.substr(1, kHexSize)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    salt = salt << 4 | digit;
  }
  return salt;
}

// Eight bytes are getrandbits(64) written little-endian; the command wants the first byte on top.
std::uint64_t Salts::next() { return __builtin_bswap64(random_.next_bits(64)); }

base::Result<WarmupSeeds> warmup_seeds(std::uint64_t warmup_random_seed) {
  if (warmup_random_seed > kWarmupSeedMax) {
    return base::fail(
        base::ExitCode::kInput,
        fmt::format("settings.warmup.warmup_random_seed: {} is too large: the order and "
                    "salt generators take the seed plus 1 and plus 2; use at most {}",
                    warmup_random_seed, kWarmupSeedMax));
  }
  return WarmupSeeds{warmup_random_seed, warmup_random_seed + 1, warmup_random_seed + 2};
}

}  // namespace tutti::plan
