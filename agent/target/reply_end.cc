// How a reply ends: every end has one judgement, and a failed reply keeps what had arrived.
// In this order, the first that fits:
//   cancelled by us                                  kCancelled
//   no reply header                                  the transport's failure
//   status other than 200                            kHttpStatus, however its body ended
//   a limit broken (event, text, tool calls)         kBadReply
//   error object or `event: error` inside a 200      kStreamError; http_status = its code, else 502
//   stream with [DONE] and output or finish reason   ok, however the connection ended
//   stream with a finish reason and a FIN            ok; without any token it is an empty answer
//   stream cut by FIN inside framing, reset, timeout the transport's failure
//   stream of malformed events only                  kBadReply
//   stream without any event, or [DONE] but no token kEmptyStream
//   stream that just ends                            kTruncated
//   JSON reply: not whole, no completion, no choice  the transport's failure, kBadReply
// The reference client counts cut and erroneous streams as successes; we do not.

#include <algorithm>
#include <string>
#include <utility>

#include "agent/target/reply.h"

namespace tutti::target {
namespace {

using wire::Failure;

constexpr int kHttpOk = 200;

// Ends that are failures whatever the reply said so far.
struct TransportEnd {
  Failure failure = Failure::kNone;
  std::string_view words;
};

TransportEnd transport_end(EndKind end) {
  switch (end) {
    case EndKind::kComplete:
      return {};
    case EndKind::kClosed:
      return {Failure::kReset, "the connection was closed before the reply was whole"};
    case EndKind::kReset:
      return {Failure::kReset, "the connection was lost before the reply was whole"};
    case EndKind::kConnect:
      return {Failure::kConnect, "could not connect"};
    case EndKind::kConnectTimeout:
      return {Failure::kConnectTimeout, "no connection within the time allowed"};
    case EndKind::kTls:
      return {Failure::kTls, "TLS failed"};
    case EndKind::kRequestTimeout:
      return {Failure::kRequestTimeout, "no whole reply within the time allowed"};
    case EndKind::kTurnTimeout:
      return {Failure::kTurnTimeout, "no whole reply within the turn's time"};
    case EndKind::kBadReply:
      return {Failure::kBadReply, "the reply is not HTTP"};
    case EndKind::kCancelled:
      return {Failure::kCancelled, "cancelled by this client"};
    case EndKind::kInternal:
      return {Failure::kInternal, "internal error"};
  }
  return {Failure::kInternal, "unknown end"};
}

// Swapped, not copied: buffers go round between the pool of replies and the ring of records. Most
// texts are empty on both sides.
void swap_output(wire::OutputText& a, wire::OutputText& b) {
  const auto swap_text = [](std::string& x, std::string& y) {
    if (!x.empty() || !y.empty()) {
      x.swap(y);
    }
  };
  swap_text(a.content_first, b.content_first);
  swap_text(a.content_rest, b.content_rest);
  swap_text(a.reasoning_first, b.reasoning_first);
  swap_text(a.reasoning_rest, b.reasoning_rest);
  swap_text(a.tool_calls, b.tool_calls);
  std::swap(a.has_content, b.has_content);
  std::swap(a.has_reasoning, b.has_reasoning);
  std::swap(a.has_rest, b.has_rest);
}

}  // namespace

void Reply::on_end(EndKind end, base::Instant at, wire::Record& out, std::string_view detail) {
  if (body_kind_ == Body::kEvents && !broken_) {
    // What still waits for its line end arrived with the last bytes, not with the end.
    arriving_at_ = last_byte_at_.is_set() ? last_byte_at_ : at;
    const std::uint32_t malformed = malformed_events_;
    sse_.finish([this](const text::SseEvent& event) { on_event(event); });
    if (end != EndKind::kComplete) {
      malformed_events_ = malformed;  // a cut event is the cut's fault, not the server's grammar
    }
  }
  TransportEnd transport = transport_end(end);
  if (end == EndKind::kTurnTimeout) {
    transport.words = std::exchange(detail, {});  // the reference's whole text
  }
  Failure failure = Failure::kNone;
  if (end == EndKind::kCancelled || (http_status_ == 0 && transport.failure != Failure::kNone)) {
    failure = transport.failure;
    set_message(transport.words, detail);
  } else if (http_status_ == 0) {
    failure = Failure::kBadReply;
    set_message("the exchange ended without a reply");
  } else if (http_status_ != kHttpOk) {
    failure = Failure::kHttpStatus;
    set_message("HTTP " + std::to_string(http_status_), body_);
    if (body_.empty()) {
      message_.append(": ");  // the reference's form, also without a body
    }
  } else if (broken_) {
    failure = Failure::kBadReply;
  } else if (error_seen_) {
    failure = Failure::kStreamError;
  } else {
    failure = body_kind_ == Body::kEvents ? judge_stream(end) : judge_json(end, out);
    if (failure == transport.failure && failure != Failure::kNone) {
      set_message(transport.words, detail);
    }
  }
  out.failure = failure;
  out.outcome = failure == Failure::kNone        ? wire::Outcome::kOk
                : failure == Failure::kCancelled ? wire::Outcome::kCancelled
                                                 : wire::Outcome::kFailed;
  fill(out);
}

// [DONE] makes a stream whole however the connection ended; a finish reason does so when the
// server closed in peace, but not after a reset, a timeout or broken framing.
Failure Reply::judge_stream(EndKind end) {
  const bool peaceful = end == EndKind::kComplete || end == EndKind::kClosed;
  const bool finished = finish_ != wire::FinishReason::kNone;
  const bool only_malformed = events_ > 0 && malformed_events_ >= events_ && content_events_ == 0;
  if (!done_ && !(finished && peaceful)) {
    if (end != EndKind::kComplete) {
      return transport_end(end).failure;
    }
    if (only_malformed) {
      set_message("no event of the stream could be read");
      return Failure::kBadReply;
    }
    if (events_ == 0) {
      set_message("the event stream ended without any event");
      return Failure::kEmptyStream;
    }
    set_message("the stream ended without [DONE] and without a finish reason");
    return Failure::kTruncated;
  }
  if (content_events_ > 0 || finished) {
    return Failure::kNone;  // a finish reason without a token is an empty answer, not a failure
  }
  if (malformed_events_ > 0) {
    set_message("no event of the stream could be read");
    return Failure::kBadReply;
  }
  set_message(events_ == 0 ? "the event stream ended without any event"
                           : "no tokens: the stream ended with [DONE] but without output and "
                             "without a finish reason");
  return Failure::kEmptyStream;
}

Failure Reply::take_video(const wire::Record& of) {
  static const VideoFolder kNone;
  const auto path = save_video(videos_ != nullptr ? *videos_ : kNone, of.phase, of.seq, body_);
  if (!path) {
    set_message(path.error().message);
    return Failure::kBadReply;
  }
  take_text(TextKind::kContent, *path);
  return broken_ ? Failure::kBadReply : Failure::kNone;
}

Failure Reply::judge_json(EndKind end, const wire::Record& of) {
  if (end != EndKind::kComplete) {
    return transport_end(end).failure;
  }
  if (body_kind_ == Body::kUnknown) {
    const bool stream = says_event_stream_ || (want_stream_ && !says_json_);
    set_message(stream ? "the event stream ended without any event" : "the reply has no body");
    return stream ? Failure::kEmptyStream : Failure::kBadReply;
  }
  const bool video = api_ == base::ApiType::kVideogen;
  if (video && is_raw_video(body_)) {
    return take_video(of);
  }
  const EventFacts facts = read_whole_reply(body_, api_, form_);
  if (!facts.valid) {
    set_message(video ? "the reply names no video" : "the reply is not a completion", body_);
    return Failure::kBadReply;
  }
  take_usage(facts);
  if (facts.is_error) {
    take_error(facts);
    return Failure::kStreamError;
  }
  if (!facts.has_choice) {
    set_message("the reply has no choice", body_);
    return Failure::kBadReply;
  }
  take_whole(facts);
  return broken_ ? Failure::kBadReply : Failure::kNone;
}

// Content and reasoning as one chunk each; no event, hence no token stamp.
void Reply::take_whole(const EventFacts& facts) {
  take_finish(facts.finish_reason);
  if (!facts.content.empty()) {
    take_text(TextKind::kContent, facts.content);
  }
  if (!facts.reasoning.empty()) {
    take_text(TextKind::kReasoning, facts.reasoning);
  }
  output_.tool_calls.assign(facts.tool_calls_json);
}

void Reply::fill(wire::Record& out) {
  out.http_status = static_cast<std::uint16_t>(
      error_seen_ && http_status_ == kHttpOk ? error_status_ : http_status_);
  out.streamed = body_kind_ == Body::kEvents;
  out.finish_reason = finish_;
  out.finish_text.assign(finish_text_);
  out.first_token_at = first_token_at_;
  out.last_token_at = last_token_at_;
  out.content_events = content_events_;
  out.malformed_events = malformed_events_;
  out.prompt_tokens = prompt_tokens_;
  out.completion_tokens = completion_tokens_;
  out.reasoning_tokens = reasoning_tokens_;
  if (out.failure == Failure::kNone) {
    out.error_message.clear();
  } else {
    out.error_message.assign(message_);
  }
  if (!tools_.empty()) {
    tools_.write(output_.tool_calls);
  }
  output_.has_content = content_chunks_ > 0;
  output_.has_reasoning = reasoning_chunks_ > 0;
  output_.has_rest = (output_.has_reasoning ? reasoning_chunks_ : content_chunks_) > 1;
  swap_output(out.output, output_);
  out.chunk_at.swap(chunk_at_);
  gaps_.write(out.gaps);
}

}  // namespace tutti::target
