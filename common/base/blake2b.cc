#include "common/base/blake2b.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"

namespace tutti::base {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::size_t kBlock = 128;
using Words = std::array<std::uint64_t, 16>;
using State = std::array<std::uint64_t, 8>;

constexpr State kStart = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                          0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                          0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Which message word goes where, by round; rounds 10 and 11 begin anew.
constexpr std::uint8_t kOrder[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                         {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                         {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                         {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                         {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                         {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                         {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                         {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                         {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                         {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

// The four words of one column or diagonal of the 4 × 4 state.
constexpr std::uint8_t kQuarters[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14},
                                          {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
                                          {2, 7, 8, 13},  {3, 4, 9, 14}};

void mix(Words& v, const std::uint8_t (&quarter)[4], std::uint64_t x, std::uint64_t y) {
  std::uint64_t& a = v[quarter[0]];
  std::uint64_t& b = v[quarter[1]];
  std::uint64_t& c = v[quarter[2]];
  std::uint64_t& d = v[quarter[3]];
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

// `bytes`: of the message so far, this block included.
void compress(State& state, const Words& block, std::uint64_t bytes, bool last) {
  Words v{};
  for (std::size_t i = 0; i < 8; ++i) {
    v[i] = state[i];
    v[i + 8] = kStart[i];
  }
  v[12] ^= bytes;
  v[14] ^= last ? UINT64_MAX : 0;
  for (std::size_t round = 0; round < 12; ++round) {
    const auto& order = kOrder[round % 10];
    for (std::size_t q = 0; q < 8; ++q) {
      mix(v, kQuarters[q], block[order[2 * q]], block[order[2 * q + 1]]);
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    state[i] ^= v[i] ^ v[i + 8];
  }
}

}  // namespace

std::string blake2b_hex(std::string_view text, std::size_t digest_bytes) {
  TUTTI_CHECK(digest_bytes >= 1 && digest_bytes <= 64);
  State state = kStart;
  state[0] ^= 0x01010000 ^ digest_bytes;
  std::uint64_t done = 0;
  bool last = false;
  while (!last) {  // an empty message is one block of zeros
    const std::size_t size = text.size() < kBlock ? text.size() : kBlock;
    last = text.size() <= kBlock;
    Words block{};
    std::memcpy(block.data(), text.data(), size);
    text.remove_prefix(size);
    done += size;
    compress(state, block, done, last);
  }
  std::array<unsigned char, 64> digest{};
  std::memcpy(digest.data(), state.data(), digest.size());
  std::string hex;
  for (std::size_t i = 0; i < digest_bytes; ++i) {
    hex += fmt::format("{:02x}", digest[i]);
  }
  return hex;
}

}  // namespace tutti::base
