#include "common/stats/ratio.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "common/base/check.h"

namespace tutti::stats {
namespace {

// Numerator limbs, least significant first. Two empty limbs below the value give its quotient by
// any 64-bit n at least 65 significant bits: more than a double and its rounding need.
constexpr std::size_t kSpareLimbs = 2;
constexpr std::size_t kLimbs = 4 + kSpareLimbs;
using Limbs = std::array<std::uint64_t, kLimbs>;

UnsignedWide magnitude(Wide value) {
  return value < 0 ? UnsignedWide{0} - static_cast<UnsignedWide>(value)
                   : static_cast<UnsignedWide>(value);
}

std::uint64_t low(UnsignedWide x) { return static_cast<std::uint64_t>(x); }
std::uint64_t high(UnsignedWide x) { return static_cast<std::uint64_t>(x >> 64); }

double divide(Limbs limbs, std::uint64_t n) {
  TUTTI_CHECK(n > 0);
  UnsignedWide rest = 0;
  for (std::size_t i = kLimbs; i-- > 0;) {
    const UnsignedWide part = (rest << 64) | limbs[i];
    limbs[i] = low(part / n);
    rest = part % n;
  }
  std::size_t top = kLimbs - 1;
  while (top > 1 && limbs[top] == 0) {
    --top;
  }
  // The two leading limbs hold at least 65 bits of a non-zero quotient; what lies below only
  // matters as "there is more" (the sticky bit) to the one rounding done by the conversion.
  UnsignedWide lead = (static_cast<UnsignedWide>(limbs[top]) << 64) | limbs[top - 1];
  bool more = rest != 0;
  for (std::size_t i = 0; i + 1 < top; ++i) {
    more = more || limbs[i] != 0;
  }
  if (more) {
    lead |= 1;
  }
  const int limb_shift = static_cast<int>(top) - 1 - static_cast<int>(kSpareLimbs);
  return std::ldexp(static_cast<double>(lead), 64 * limb_shift);
}

}  // namespace

double ratio(Wide value, std::uint64_t n) {
  const UnsignedWide m = magnitude(value);
  const double quotient = divide({0, 0, low(m), high(m), 0, 0}, n);
  return value < 0 ? -quotient : quotient;
}

double square_ratio(Wide value, std::uint64_t n) {
  const UnsignedWide m = magnitude(value);
  const UnsignedWide ll = UnsignedWide{low(m)} * low(m);
  const UnsignedWide lh = UnsignedWide{low(m)} * high(m);
  const UnsignedWide hh = UnsignedWide{high(m)} * high(m);
  // m² = hh·2^128 + 2·lh·2^64 + ll; the middle product is added twice, so no shift can overflow.
  UnsignedWide column = UnsignedWide{high(ll)} + low(lh) + low(lh);
  const std::uint64_t limb1 = low(column);
  column = UnsignedWide{high(column)} + low(hh) + high(lh) + high(lh);
  const std::uint64_t limb2 = low(column);
  const std::uint64_t limb3 = high(column) + high(hh);
  return divide({0, 0, low(ll), limb1, limb2, limb3}, n);
}

}  // namespace tutti::stats
