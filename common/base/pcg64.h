#pragma once

// numpy's default_rng(seed), bit for bit, as far as random data sets need it: SeedSequence over an
// unsigned 64-bit seed, PCG64 (128-bit LCG, XSL-RR output), and Generator.integers, which draws
// ranges of up to 2^32 from halves of words by Lemire's method with rejection. Vectors made with
// numpy: tests/conformance/pcg64.json. Not thread-safe; one owner.

#include <cstdint>

namespace tutti::base {

class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t next_u64();
  // The lower half of a word, then its upper half: kept until asked for, over other draws too.
  std::uint32_t next_u32();
  // Uniform in [0, n), 0 < n ≤ 2^32: one element of integers(0, n). n = 1 draws nothing.
  std::uint64_t below(std::uint64_t n);

 private:
  __extension__ using Wide = unsigned __int128;

  void step();

  Wide state_ = 0;
  Wide increment_ = 0;
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

}  // namespace tutti::base
