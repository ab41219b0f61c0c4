#pragma once

// Faults a user can ask for, and the script that says which request gets one:
//   KIND[:ARGUMENT][@WHEN]    status:503@10%   reset-after:5@every:7   stall:3@at:12   no-done
// WHEN is a share of requests (10%), every:N, at:N or at:N-M (requests are counted from 1); without
// it every request. The first rule that matches wins. Pure; any thread.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tutti::mock_llm {

enum class FaultKind : std::uint8_t {
  kNone,
  kStatus,       // answer with this HTTP status at once
  kReset,        // RST instead of an answer
  kResetAfter,   // RST after n content events
  kTruncate,     // FIN after n content events: the body is cut, no terminating chunk
  kEnd,          // the body ends properly after n content events: no finish_reason, no [DONE]
  kStall,        // silence after n content events
  kSlowHeaders,  // status line, a pause, then the rest of the headers
  kMalformed,    // the n-th content event is broken JSON
  kErrorEvent,   // after n content events: data: {"error": …}, then [DONE]
  kNamedError,   // after n content events: event: error, then the end of the body
  kNoDone,       // whole stream, but no [DONE]
  kJson,         // one JSON document where a stream was asked for
  kEmpty,        // 200 with an empty body
  kClose,        // a whole answer that promises keep-alive, then FIN
  kNoAnswer,     // nothing at all; the connection stays open
  kDrip,         // every byte in a send of its own
};
inline constexpr std::size_t kFaultKinds = 17;

struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::uint32_t number = 0;      // status, or count of events
  std::int64_t duration_ns = 0;  // slow-headers
};

std::string_view fault_name(FaultKind kind);

// "KIND[:ARGUMENT]", without WHEN.
tl::expected<Fault, std::string> parse_fault(std::string_view text);

struct FaultRule {
  enum class When : std::uint8_t { kAlways, kShare, kEvery, kRange };
  Fault fault;
  When when = When::kAlways;
  double share = 0;         // 0..1
  std::uint64_t first = 0;  // every: N; range: first … last
  std::uint64_t last = 0;

  bool matches(std::uint64_t request_number, double chance) const;
};

tl::expected<FaultRule, std::string> parse_fault_rule(std::string_view text);

// `chance` is the request's own uniform draw in [0, 1): shares of several rules stack up on it, so
// that 5% and 10% together hit 15% of the requests.
Fault pick_fault(const std::vector<FaultRule>& rules, std::uint64_t request_number, double chance);

// For --help: one line a kind.
std::string fault_help();

}  // namespace tutti::mock_llm
