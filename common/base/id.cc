#include "common/base/id.h"

#include <sys/random.h>

#include "common/base/check.h"

namespace tutti::base {
namespace {

void append_hex(std::string& out, std::uint64_t word) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) {
    out.push_back(kDigits[(word >> shift) & 0xF]);
  }
}

// Finaliser of SplitMix64 (Steele et al., 2014): a bijection on 64 bits.
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

std::string Id::hex() const {
  std::string out;
  out.reserve(32);
  append_hex(out, high);
  append_hex(out, low);
  return out;
}

Id fresh_id() {
  std::uint64_t words[2] = {0, 0};
  TUTTI_CHECK(getrandom(words, sizeof words, 0) == static_cast<ssize_t>(sizeof words));
  return {words[0] | 1U, words[1]};
}

std::string draft_path(const std::string& path) {
  std::string out = path + ".";
  append_hex(out, fresh_id().low);
  return out + ".draft";
}

std::string query_id(const Id& run, std::uint32_t phase, std::uint64_t seq) {
  // The low half is a bijection of seq for a fixed run and phase: collisions are impossible there.
  const std::uint64_t high = mix(run.high ^ mix(phase + 0x632BE59BD9B4E019ULL));
  const std::uint64_t low = mix(seq ^ mix(run.low + phase));
  return Id{high, low}.hex();
}

}  // namespace tutti::base
