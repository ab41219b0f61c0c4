#pragma once

// Quotients of wide integers, rounded once. The files' averages and deviations come from a language
// with unbounded integers whose division rounds the exact quotient to the nearest double; a series
// of near-equal nanosecond values cancels so strongly that one extra rounding would show. Pure; no
// owner.

#include <cstdint>

namespace tutti::stats {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

// value / n to the nearest double (ties to even); n ≥ 1.
double ratio(Wide value, std::uint64_t n);

// value² / n, the square taken exactly (256 bits), to the nearest double; n ≥ 1.
double square_ratio(Wide value, std::uint64_t n);

}  // namespace tutti::stats
