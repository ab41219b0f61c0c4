#pragma once

// CPython's random.Random, bit for bit: MT19937 seeded by init_by_array over the 32-bit words of an
// unsigned 64-bit integer. The orders, gaps and salts of a run come from here and nowhere else, so
// that equal seeds give equal runs on any library. Vectors: tests/conformance/mt19937_core.json.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::base {

class Mt19937 {
 public:
  explicit Mt19937(std::uint64_t seed);

  std::uint32_t next_u32();
  // Uniform in [0, 1) with 53 bits: (a >> 5, b >> 6) of two words, a first.
  double next_double();
  // `bits` in 1..64; words are appended from the least significant upward.
  std::uint64_t next_bits(int bits);
  // Uniform in [0, n), n > 0, by rejection on bit_length(n) bits.
  std::uint64_t below(std::uint64_t n);
  // -ln(1 - u) / rate.
  double exponential(double rate);
  // getrandbits(8 n) written little-endian.
  std::vector<std::uint8_t> bytes(std::size_t n);
  // Fisher–Yates from the end: for i = n-1 … 1 swap x[i], x[below(i+1)].
  template <class T>
  void shuffle(std::vector<T>& x) {
    for (std::size_t i = x.size(); i-- > 1;) {
      std::swap(x[i], x[below(i + 1)]);
    }
  }

  // SHA-free view of the state, for the conformance vectors.
  const std::array<std::uint32_t, 624>& state() const { return state_; }

 private:
  void refill();

  std::array<std::uint32_t, 624> state_{};
  std::size_t position_ = 624;
};

}  // namespace tutti::base
