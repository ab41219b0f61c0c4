#include "tests/mock_llm/fault.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tests/mock_llm/draw.h"

namespace tutti::mock_llm {
namespace {

enum class Argument : std::uint8_t { kNone, kStatus, kEvents, kEventNumber, kDuration };

struct Kind {
  std::string_view name;
  FaultKind kind;
  Argument argument;
  std::string_view help;
};

constexpr Kind kKinds[] = {
    {"none", FaultKind::kNone, Argument::kNone,
     "a good answer (shields a request from later rules)"},
    {"status", FaultKind::kStatus, Argument::kStatus,
     "answer with HTTP status N (300..599) at once"},
    {"reset", FaultKind::kReset, Argument::kNone, "TCP reset instead of an answer"},
    {"reset-after", FaultKind::kResetAfter, Argument::kEvents, "TCP reset after N content events"},
    {"truncate", FaultKind::kTruncate, Argument::kEvents,
     "connection closed after N content events, in mid-body"},
    {"end", FaultKind::kEnd, Argument::kEvents,
     "body ends properly after N content events: no finish_reason, no [DONE]"},
    {"stall", FaultKind::kStall, Argument::kEvents, "silence after N content events"},
    {"slow-headers", FaultKind::kSlowHeaders, Argument::kDuration,
     "status line, a pause of N (e.g. 500ms), then the other headers"},
    {"malformed", FaultKind::kMalformed, Argument::kEventNumber,
     "the N-th content event is broken JSON"},
    {"error-event", FaultKind::kErrorEvent, Argument::kEvents,
     "an error object in the stream after N content events, then [DONE]"},
    {"named-error", FaultKind::kNamedError, Argument::kEvents,
     "an `event: error` after N content events, then the end of the body"},
    {"no-done", FaultKind::kNoDone, Argument::kNone, "a whole stream without [DONE]"},
    {"json", FaultKind::kJson, Argument::kNone, "a JSON document where a stream was asked for"},
    {"empty", FaultKind::kEmpty, Argument::kNone, "200 with an empty body"},
    {"close", FaultKind::kClose, Argument::kNone,
     "a whole answer, then the kept connection is closed"},
    {"no-answer", FaultKind::kNoAnswer, Argument::kNone, "nothing; the connection stays open"},
    {"drip", FaultKind::kDrip, Argument::kNone, "every byte of the answer in a send of its own"},
};
static_assert(std::size(kKinds) == kFaultKinds);

tl::expected<std::uint64_t, std::string> parse_count(std::string_view text, std::uint64_t least,
                                                     std::uint64_t most) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || value < least || value > most) {
    return tl::unexpected(
        fmt::format("\"{}\" must be a whole number within {} and {}", text, least, most));
  }
  return value;
}

std::string_view argument_word(Argument argument) {
  switch (argument) {
    case Argument::kNone:
      return "";
    case Argument::kDuration:
      return ":DURATION";
    default:
      return ":N";
  }
}

tl::expected<Fault, std::string> with_argument(const Kind& kind, std::string_view text) {
  Fault fault;
  fault.kind = kind.kind;
  if (kind.argument == Argument::kDuration) {
    const auto ns = parse_duration_ns(text);
    if (!ns) {
      return tl::unexpected(ns.error());
    }
    fault.duration_ns = *ns;
    return fault;
  }
  const bool status = kind.argument == Argument::kStatus;
  const std::uint64_t least = status ? 300 : kind.argument == Argument::kEventNumber ? 1 : 0;
  const auto count = parse_count(text, least, status ? 599 : static_cast<std::uint64_t>(kCountMax));
  if (!count) {
    return tl::unexpected(count.error());
  }
  fault.number = static_cast<std::uint32_t>(*count);
  return fault;
}

tl::expected<FaultRule, std::string> parse_when(FaultRule rule, std::string_view when) {
  if (!when.empty() && when.back() == '%') {
    const std::string_view digits = when.substr(0, when.size() - 1);
    const char* end = digits.data() + digits.size();
    double percent = -1;
    const auto [stop, code] = std::from_chars(digits.data(), end, percent);
    if (code != std::errc{} || stop != end || !(percent >= 0 && percent <= 100)) {
      return tl::unexpected(fmt::format("\"{}\" must be a share within 0% and 100%", when));
    }
    rule.when = FaultRule::When::kShare;
    rule.share = percent / 100;
    return rule;
  }
  const std::size_t colon = when.find(':');
  const std::string_view word = when.substr(0, colon);
  if (colon == std::string_view::npos || (word != "every" && word != "at")) {
    return tl::unexpected(fmt::format(
        "\"@{}\": write @10%, @every:7, @at:5 or @at:5-9 (requests count from 1)", when));
  }
  std::string_view numbers = when.substr(colon + 1);
  const std::size_t dash = word == "at" ? numbers.find('-') : std::string_view::npos;
  const auto first = parse_count(numbers.substr(0, dash), 1, UINT64_MAX);
  const auto last =
      dash == std::string_view::npos ? first : parse_count(numbers.substr(dash + 1), 1, UINT64_MAX);
  if (!first || !last) {
    return tl::unexpected(!first ? first.error() : last.error());
  }
  if (*last < *first) {
    return tl::unexpected(fmt::format("\"@{}\": the range's end lies before its start", when));
  }
  rule.when = word == "every" ? FaultRule::When::kEvery : FaultRule::When::kRange;
  rule.first = *first;
  rule.last = *last;
  return rule;
}

}  // namespace

std::string_view fault_name(FaultKind kind) {
  for (const Kind& known : kKinds) {
    if (known.kind == kind) {
      return known.name;
    }
  }
  return "none";
}

tl::expected<Fault, std::string> parse_fault(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const Kind& kind : kKinds) {
    if (kind.name != name) {
      continue;
    }
    const bool given = colon != std::string_view::npos;
    if (given != (kind.argument != Argument::kNone)) {
      return tl::unexpected(
          fmt::format("{} is written {}{}", name, name, argument_word(kind.argument)));
    }
    return given ? with_argument(kind, text.substr(colon + 1)) : Fault{kind.kind, 0, 0};
  }
  std::string names;
  for (const Kind& kind : kKinds) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  }
  return tl::unexpected(fmt::format("\"{}\" is no fault; known are {}", name, names));
}

bool FaultRule::matches(std::uint64_t request_number, double chance) const {
  switch (when) {
    case When::kAlways:
      return true;
    case When::kShare:
      return chance < share;
    case When::kEvery:
      return request_number % first == 0;
    case When::kRange:
      return request_number >= first && request_number <= last;
  }
  return false;
}

tl::expected<FaultRule, std::string> parse_fault_rule(std::string_view text) {
  const std::size_t at = text.find('@');
  const auto fault = parse_fault(text.substr(0, at));
  if (!fault) {
    return tl::unexpected(fault.error());
  }
  FaultRule rule;
  rule.fault = *fault;
  if (at == std::string_view::npos) {
    return rule;
  }
  return parse_when(rule, text.substr(at + 1));
}

Fault pick_fault(const std::vector<FaultRule>& rules, std::uint64_t request_number, double chance) {
  for (const FaultRule& rule : rules) {
    if (rule.matches(request_number, chance)) {
      return rule.fault;
    }
    if (rule.when == FaultRule::When::kShare) {
      chance -= rule.share;
      // Past its own share: a later rule's share begins where this one ended.
    }
  }
  return Fault{};
}

std::string fault_help() {
  std::string out;
  for (const Kind& kind : kKinds) {
    out += fmt::format("    {:<24}{}\n",
                       fmt::format("{}{}", kind.name, argument_word(kind.argument)), kind.help);
  }
  return out;
}

}  // namespace tutti::mock_llm
