#pragma once

// The last value of every enum that crosses the wire, so that a decoder refuses what it does not
// know instead of carrying a number no switch handles. Private to the codecs.

#include <cstdint>

#include "common/base/vocabulary.h"
#include "common/wire/record.h"

namespace tutti::wire {

template <class E>
inline constexpr E kLastOf = E{};  // an enum without its line below accepts only its first value

template <>
inline constexpr auto kLastOf<base::PhaseKind> = base::PhaseKind::kAccuracy;
template <>
inline constexpr auto kLastOf<base::Pacing> = base::Pacing::kClosedLoop;
template <>
inline constexpr auto kLastOf<base::Balance> = base::Balance::kAffinity;
template <>
inline constexpr auto kLastOf<base::Way> = base::Way::kMulti;
template <>
inline constexpr auto kLastOf<base::ApiType> = base::ApiType::kVideogen;
template <>
inline constexpr auto kLastOf<Outcome> = Outcome::kCancelled;
template <>
inline constexpr auto kLastOf<Failure> = Failure::kTurnSkipped;
template <>
inline constexpr auto kLastOf<FinishReason> = FinishReason::kOther;

}  // namespace tutti::wire
