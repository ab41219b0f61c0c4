#include "common/base/pcg64.h"

#include <array>
#include <bit>
#include <cstddef>

#include "common/base/check.h"

namespace tutti::base {
namespace {

constexpr std::size_t kPoolWords = 4;

// The hash of SeedSequence: each use multiplies its constant on.
class Hash {
 public:
  Hash(std::uint32_t start, std::uint32_t factor) : constant_(start), factor_(factor) {}

  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant_;
    constant_ *= factor_;
    value *= constant_;
    return value ^ (value >> 16U);
  }

 private:
  std::uint32_t constant_;
  std::uint32_t factor_;
};

std::uint32_t mixed(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t out = 0xca01f9ddU * x - 0x4973f715U * y;
  return out ^ (out >> 16U);
}

// SeedSequence(seed).generate_state(4, uint64). The words of the seed beyond those it has are 0.
std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  const std::array<std::uint32_t, kPoolWords> entropy{
      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U), 0, 0};
  std::array<std::uint32_t, kPoolWords> pool{};
  Hash into_pool(0x43b0d7e5U, 0x931e8875U);
  for (std::size_t i = 0; i < kPoolWords; ++i) {
    pool[i] = into_pool(entropy[i]);
  }
  for (std::size_t from = 0; from < kPoolWords; ++from) {
    for (std::size_t to = 0; to < kPoolWords; ++to) {
      if (from != to) {
        pool[to] = mixed(pool[to], into_pool(pool[from]));
      }
    }
  }
  Hash out_of_pool(0x8b51f9ddU, 0x58f38dedU);
  std::array<std::uint64_t, 4> out{};
  for (std::size_t i = 0; i < 2 * out.size(); ++i) {
    const std::uint64_t word = out_of_pool(pool[i % kPoolWords]);
    out[i / 2] |= i % 2 == 0 ? word : word << 32U;
  }
  return out;
}

}  // namespace

Pcg64::Pcg64(std::uint64_t seed) {
  const auto words = seed_words(seed);
  increment_ = (((Wide{words[2]} << 64U) | words[3]) << 1U) | 1U;
  step();
  state_ += (Wide{words[0]} << 64U) | words[1];
  step();
}

void Pcg64::step() {
  constexpr Wide kFactor = (Wide{2549297995355413924ULL} << 64U) | 4865540595714422341ULL;
  state_ = state_ * kFactor + increment_;
}

std::uint64_t Pcg64::next_u64() {
  step();
  const auto high = static_cast<std::uint64_t>(state_ >> 64U);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58U));
}

std::uint32_t Pcg64::next_u32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const std::uint64_t word = next_u64();
  has_half_ = true;
  half_ = static_cast<std::uint32_t>(word >> 32U);
  return static_cast<std::uint32_t>(word);
}

std::uint64_t Pcg64::below(std::uint64_t n) {
  constexpr std::uint64_t kWords = std::uint64_t{1} << 32U;
  TUTTI_CHECK(n > 0 && n <= kWords);
  if (n == 1) {
    return 0;
  }
  if (n == kWords) {
    return next_u32();
  }
  // Of 2^32 words the first 2^32 mod n products' low halves are drawn again, so that each value is
  // met equally often.
  std::uint64_t product = next_u32() * n;
  if (static_cast<std::uint32_t>(product) < n) {
    const std::uint64_t again_below = (kWords - n) % n;
    while (static_cast<std::uint32_t>(product) < again_below) {
      product = next_u32() * n;
    }
  }
  return product >> 32U;
}

}  // namespace tutti::base
