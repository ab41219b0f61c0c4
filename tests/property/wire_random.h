#pragma once

// Random messages of every kind, with the values that break codecs: extremes, empties, bytes that
// are no UTF-8. Every struct is taken apart by structured bindings, so a field added to a message
// without a line here does not compile.

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/wire/messages.h"

namespace tutti::wire {

class RandomMessages {
 public:
  explicit RandomMessages(std::uint64_t seed) : draw_(seed) {}

  // A message of alternative `kind` of Message.
  Message message(std::size_t kind) { return make<0>(kind); }

  Record record() {
    Record out;
    fill(out);
    return out;
  }

  // A record as runs have it: small steps, most optional things absent.
  Record usual_record(base::Seq seq, base::Instant issued) {
    Record out;
    out.seq = seq;
    out.sample = static_cast<base::SampleIndex>(draw_.below(10'000));
    out.phase = 1;
    out.frontend = static_cast<std::uint16_t>(draw_.below(4));
    out.http_status = 200;
    out.finish_reason = FinishReason::kStop;
    out.streamed = out.connection_reused = out.output.has_content = out.output.has_rest = true;
    out.issued_at = issued;
    out.due_at = issued - base::Duration::micros(static_cast<std::int64_t>(draw_.below(200)));
    out.sent_at = issued + base::Duration::micros(static_cast<std::int64_t>(draw_.below(90)));
    out.first_byte_at = out.sent_at + base::Duration::micros(20'000);
    out.first_token_at =
        out.first_byte_at + base::Duration::nanos(static_cast<std::int64_t>(draw_.below(900'000)));
    out.last_token_at =
        out.first_token_at +
        base::Duration::nanos(static_cast<std::int64_t>(draw_.below(4'000'000'000)));
    out.done_at = out.last_token_at + base::Duration::micros(30);
    out.content_events = static_cast<std::uint32_t>(draw_.below(500));
    out.bytes_up = static_cast<std::uint32_t>(draw_.below(9'000));
    out.bytes_down = static_cast<std::uint32_t>(draw_.below(90'000));
    out.completion_tokens = static_cast<std::int32_t>(out.content_events);
    out.prompt_tokens = static_cast<std::int32_t>(draw_.below(2'000));
    return out;
  }

  base::Mt19937& draw() { return draw_; }

 private:
  template <std::size_t I>
  Message make(std::size_t kind) {
    if constexpr (I < std::variant_size_v<Message>) {
      if (kind != I) {
        return make<I + 1>(kind);
      }
      std::variant_alternative_t<I, Message> out;
      fill(out);
      return Message{std::move(out)};
    } else {
      return Message{};
    }
  }

  template <class... T>
  void all(T&... fields) {
    (fill(fields), ...);
  }

  template <class T>
  std::enable_if_t<std::is_integral_v<T>> fill(T& out) {
    switch (draw_.below(6)) {
      case 0:
        out = 0;
        break;
      case 1:
        out = std::numeric_limits<T>::max();
        break;
      case 2:
        out = std::numeric_limits<T>::min();
        break;
      default:
        out = static_cast<T>(draw_.next_bits(static_cast<int>(1 + draw_.below(64))));
    }
  }
  void fill(bool& out) { out = draw_.below(2) == 1; }
  void fill(double& out) { out = draw_.next_double(); }
  void fill(std::string& out) {
    const std::uint64_t size = draw_.below(4) == 0 ? 0 : draw_.below(40);
    const auto bytes = draw_.bytes(static_cast<std::size_t>(size));
    out.assign(bytes.begin(), bytes.end());
  }
  void fill(base::Instant& out) { fill(out.ns); }
  void fill(base::Duration& out) { fill(out.ns); }
  void fill(base::Id& out) { all(out.high, out.low); }
  template <class E>
  void pick(E& out, E last) {
    out = static_cast<E>(draw_.below(static_cast<std::uint64_t>(last) + 1));
  }
  void fill(base::PhaseKind& out) { pick(out, base::PhaseKind::kAccuracy); }
  void fill(base::Pacing& out) { pick(out, base::Pacing::kClosedLoop); }
  void fill(base::Balance& out) { pick(out, base::Balance::kAffinity); }
  void fill(base::Way& out) { pick(out, base::Way::kMulti); }
  void fill(base::ApiType& out) { pick(out, base::ApiType::kVideogen); }
  void fill(Outcome& out) { pick(out, Outcome::kCancelled); }
  void fill(Failure& out) { pick(out, Failure::kTurnSkipped); }
  void fill(FinishReason& out) { pick(out, FinishReason::kOther); }
  template <class T>
  void fill(std::vector<T>& out) {
    const std::uint64_t size = draw_.below(4) == 0 ? 0 : draw_.below(12);
    out.resize(static_cast<std::size_t>(size));
    for (T& each : out) {
      fill(each);
    }
  }
  template <class A, class B>
  void fill(std::pair<A, B>& out) {
    all(out.first, out.second);
  }
  void fill(base::IssueCommand& out) {
    auto& [seq, sample, due_offset, salted, salt] = out;
    all(seq, sample, due_offset, salted, salt);
    salt = salted ? salt : 0;  // an unsalted command has none
  }

#define TUTTI_FILL(Type, ...)  \
  void fill(Type& out) {       \
    auto& [__VA_ARGS__] = out; \
    all(__VA_ARGS__);          \
  }
  TUTTI_FILL(Dial, a, b)
  TUTTI_FILL(Hello, a, b, c, d, e, f, g, h, i, j, k, l, m)
  TUTTI_FILL(Welcome, a, b, c, d)
  TUTTI_FILL(Refused, a)
  TUTTI_FILL(ClockPing, a, b)
  TUTTI_FILL(ClockPong, a, b, c, d)
  TUTTI_FILL(Header, a, b)
  TUTTI_FILL(TargetSpec, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  TUTTI_FILL(ReplyCounting, a, b, c)
  TUTTI_FILL(Prepare, a, b, c, d, e, f, g)
  TUTTI_FILL(BodiesWanted, a, b)
  TUTTI_FILL(BodyChunk, a, b, c, d)
  TUTTI_FILL(Reach, a, b, c)
  TUTTI_FILL(Prepared, a, b, c)
  TUTTI_FILL(ArmPhase, a, b, c, d, e, f, g)
  TUTTI_FILL(Armed, a)
  void fill(Lease& out) {
    all(out.phase, out.commands);
    std::size_t left = draw_.below(2) == 0 ? 0 : out.commands.size();  // of conversations, or none
    while (left > 0) {
      Trajectory& one = out.trajectories.emplace_back();
      one.turns = static_cast<std::uint32_t>(1 + draw_.below(left));
      fill(one.conversation);
      one.conversation += "c";  // never empty
      left -= one.turns;
    }
  }
  TUTTI_FILL(Recall, a, b)
  TUTTI_FILL(Recalled, a, b, c)
  TUTTI_FILL(Drain, a)
  TUTTI_FILL(Drained, a, b, c)
  TUTTI_FILL(Abort, a)
  TUTTI_FILL(OutputText, a, b, c, d, e, f, g, h)
  TUTTI_FILL(Record, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,
             aa, bb, cc, dd, ee, ff, gg, hh)
  TUTTI_FILL(PhaseGaps, a, b)
  TUTTI_FILL(TokenCount, a, b, c, d, e)
  void fill(RecordBatch& out) {
    all(out.number, out.records, out.gaps, out.tokens);
    for (Record& record : out.records) {
      record.gaps.clear();  // not the batch's business any more
    }
  }
  TUTTI_FILL(BatchAck, a)
  TUTTI_FILL(FrontendGauge, a, b, c, d)
  TUTTI_FILL(LiveCounts, a)
  TUTTI_FILL(Health, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,
             aa, bb, cc, dd, ee, ff, gg, hh, ii, jj, kk)
  TUTTI_FILL(Progress, a, b, c, d, e, f, g, h, i, j, k, l)
  TUTTI_FILL(Goodbye, a)
#undef TUTTI_FILL

  base::Mt19937 draw_;
};

}  // namespace tutti::wire
