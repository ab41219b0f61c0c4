#include "common/base/random.h"

#include <bit>
#include <cmath>

#include "common/base/check.h"

namespace tutti::base {
namespace {

constexpr std::size_t kN = 624;
constexpr std::size_t kM = 397;

// init_genrand(19650218), where init_by_array begins whatever the key.
constexpr std::array<std::uint32_t, kN> kUnseeded = [] {
  std::array<std::uint32_t, kN> state{};
  state[0] = 19650218U;
  for (std::size_t i = 1; i < kN; ++i) {
    state[i] = 1812433253U * (state[i - 1] ^ (state[i - 1] >> 30)) + static_cast<std::uint32_t>(i);
  }
  return state;
}();

constexpr std::uint32_t tempered(std::uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680U;
  y ^= (y << 15) & 0xEFC60000U;
  return y ^ (y >> 18);
}

// Of the 53 uppermost bits of the two.
constexpr double double_of(std::uint32_t first, std::uint32_t second) {
  const std::uint32_t a = first >> 5;
  const std::uint32_t b = second >> 6;
  return (static_cast<double>(a) * 67108864.0 + static_cast<double>(b)) / 9007199254740992.0;
}

}  // namespace

// Matsumoto & Nishimura's init_by_array; CPython's key is the seed's words, least significant
// first.
Mt19937::Mt19937(std::uint64_t seed) {
  const auto low = static_cast<std::uint32_t>(seed);
  const auto high = static_cast<std::uint32_t>(seed >> 32);
  // What the k-th step adds: key[k mod length] and that index.
  const std::uint32_t added[2] = {low, high != 0 ? high + 1 : low};

  state_ = kUnseeded;
  std::uint32_t before = state_[0];
  const auto first = [&](std::size_t i, std::size_t k) {
    before = (state_[i] ^ ((before ^ (before >> 30)) * 1664525U)) + added[k & 1];
    state_[i] = before;
  };
  const auto second = [&](std::size_t i) {
    before =
        (state_[i] ^ ((before ^ (before >> 30)) * 1566083941U)) - static_cast<std::uint32_t>(i);
    state_[i] = before;
  };
  // Both go once around all words but the first, the former one step further.
  for (std::size_t i = 1; i < kN; ++i) {
    first(i, i - 1);
  }
  first(1, kN - 1);
  for (std::size_t i = 2; i < kN; ++i) {
    second(i);
  }
  second(1);
  state_[0] = 0x80000000U;
}

void Mt19937::refill() {
  const auto turn = [this](std::size_t k, std::size_t next, std::size_t far) {
    const std::uint32_t y = (state_[k] & 0x80000000U) | (state_[next] & 0x7FFFFFFFU);
    state_[k] = state_[far] ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908B0DFU);
  };
  // Three loops, so that none has a remainder to take or a branch to guess.
  for (std::size_t k = 0; k < kN - kM; ++k) {
    turn(k, k + 1, k + kM);
  }
  for (std::size_t k = kN - kM; k < kN - 1; ++k) {
    turn(k, k + 1, k + kM - kN);
  }
  turn(kN - 1, 0, kM - 1);
  position_ = 0;
}

std::uint32_t Mt19937::next_u32() {
  if (position_ >= kN) {
    refill();
  }
  return tempered(state_[position_++]);
}

double Mt19937::next_double() {
  if (position_ + 2 > kN) {
    // kN is even, but a word may have been taken alone: then these two lie in two rounds.
    const std::uint32_t first = next_u32();
    return double_of(first, next_u32());
  }
  position_ += 2;
  return double_of(tempered(state_[position_ - 2]), tempered(state_[position_ - 1]));
}

std::uint64_t Mt19937::next_bits(int bits) {
  TUTTI_CHECK(bits >= 1 && bits <= 64);
  if (bits <= 32) {
    return next_u32() >> (32 - bits);
  }
  const std::uint64_t low = next_u32();
  const std::uint64_t high = next_u32() >> (64 - bits);
  return low | (high << 32);
}

std::uint64_t Mt19937::below(std::uint64_t n) {
  TUTTI_CHECK(n > 0);
  const int bits = static_cast<int>(std::bit_width(n));
  std::uint64_t draw = next_bits(bits);
  while (draw >= n) {
    draw = next_bits(bits);
  }
  return draw;
}

double Mt19937::exponential(double rate) { return -std::log(1.0 - next_double()) / rate; }

std::vector<std::uint8_t> Mt19937::bytes(std::size_t n) {
  std::vector<std::uint8_t> out;
  out.reserve(n);
  while (out.size() < n) {
    const std::size_t take = n - out.size() < 4 ? n - out.size() : 4;
    // The last word of getrandbits is shifted right by what is not needed.
    const std::uint32_t word = next_u32() >> (32 - 8 * take);
    for (std::size_t k = 0; k < take; ++k) {
      out.push_back(static_cast<std::uint8_t>(word >> (8 * k)));
    }
  }
  return out;
}

}  // namespace tutti::base
