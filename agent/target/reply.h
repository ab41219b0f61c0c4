#pragma once

// Reply: what one exchange's answer says, read while its bytes arrive. Decides whether the body is
// an event stream or one JSON document, which events are tokens and when they came, collects the
// text, and judges the end (rules: reply_end.cc). Pooled: start() begins a new reply
// in the same object and keeps its buffers, so the steady state does not allocate. Owned by one
// worker thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/gap_tally.h"
#include "agent/target/reply_event.h"
#include "agent/target/video_folder.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/text/sse.h"
#include "common/wire/record.h"

namespace tutti::target {

// How the transport ended the exchange.
enum class EndKind : std::uint8_t {
  kComplete,  // the body ended where HTTP says it does (length, last chunk, legal close)
  kClosed,    // FIN where a close is no legal end: short body, chunked body cut
  kReset,     // RST or another read/write error after the connection stood
  kConnect,   // no connection: refused, unreachable, DNS, no local port
  kConnectTimeout,
  kTls,
  kRequestTimeout,
  kTurnTimeout,
  kBadReply,   // the bytes are not HTTP
  kCancelled,  // we ended it
  kInternal,
};

class Reply {
 public:
  // `videos` outlives it; null: as one without a path. `form`, which replies of one thread share,
  // too; null: every reply is read anew.
  explicit Reply(base::ApiType api, const VideoFolder* videos = nullptr, KnownForm* form = nullptr);

  // A new exchange. `stamp_every_chunk` fills Record::chunk_at, otherwise Record::gaps is filled.
  void start(bool want_stream, bool stamp_every_chunk);
  // Once, for the final header (not 1xx). `content_type` may be empty.
  void on_header(int http_status, std::string_view content_type);
  // Body bytes without transfer coding; `at` is when they arrived and stamps events they complete.
  void on_body(std::string_view bytes, base::Instant at);
  // Fills every field of `out` that the answer decides: outcome, failure, finish_reason,
  // finish_text, http_status, streamed, first_token_at, last_token_at, content_events,
  // malformed_events, token counts, error_message, output, chunk_at, gaps. Touches no other
  // field. Its phase and seq name the file of a raw video.
  // `detail` is the transport's own words about a failure ("Connection refused"). Call once per
  // start(), also without a header.
  void on_end(EndKind end, base::Instant at, wire::Record& out, std::string_view detail = {});

  bool is_stream() const { return body_kind_ == Body::kEvents; }
  // What a stream's next event touches beside this object.
  void fetch_lines() const;
  bool first_token_seen() const { return first_token_at_.is_set(); }
  base::Instant first_token_at() const { return first_token_at_; }
  base::Instant last_byte_at() const { return last_byte_at_; }
  std::uint32_t content_events() const { return content_events_; }
  // The stream's end marker came: a keep-alive connection may still owe its last framing bytes.
  bool end_marker_seen() const { return done_; }
  // A limit was broken: nothing more can be used, the connection should be closed (kClosed is fine
  // as the end: the judgement stays kBadReply).
  bool broken() const { return broken_; }

 private:
  enum class Body : std::uint8_t { kUnknown, kEvents, kJson, kError };

  void choose_body(std::string_view bytes);
  bool take_known_event(std::string_view bytes);
  void take_template_text(TextKind kind, std::string_view text);
  void on_event(const text::SseEvent& event);
  void on_error_event(const text::SseEvent& event);
  void take(const EventFacts& facts);
  void take_whole(const EventFacts& facts);
  void take_finish(std::string_view word);
  void take_text(TextKind kind, std::string_view text);
  bool take_all_text(std::string_view text);
  void count_token();
  void keep_stamp();
  void take_usage(const EventFacts& facts);
  void take_error(const EventFacts& facts);
  void keep_body(std::string_view bytes, std::size_t bytes_max);
  void keep_whole(std::string_view bytes, std::size_t bytes_max, std::string_view words);
  void read_json_reply();
  wire::Failure judge(EndKind end);
  wire::Failure judge_stream(EndKind end);
  wire::Failure judge_json(EndKind end, const wire::Record& of);
  wire::Failure take_video(const wire::Record& of);
  void set_message(std::string_view what, std::string_view detail = {});
  void fill(wire::Record& out);

  const base::ApiType api_;
  const VideoFolder* const videos_;
  KnownForm* const form_;
  text::SseParser sse_;
  EventTemplate template_;
  ToolCallMerge tools_;
  std::string body_;     // JSON reply, or the start of an error page
  std::string message_;  // of a failure
  wire::OutputText output_;
  std::vector<base::Instant> chunk_at_;
  GapTally gaps_;
  std::string finish_text_;

  base::Instant arriving_at_{};
  base::Instant first_token_at_{};
  base::Instant last_token_at_{};
  base::Instant last_byte_at_{};
  std::uint64_t text_bytes_ = 0;
  std::uint32_t events_ = 0;
  std::uint32_t content_events_ = 0;
  std::uint32_t content_chunks_ = 0;
  std::uint32_t reasoning_chunks_ = 0;
  std::uint32_t malformed_events_ = 0;
  std::int32_t prompt_tokens_ = -1;
  std::int32_t completion_tokens_ = -1;
  std::int32_t reasoning_tokens_ = -1;
  int http_status_ = 0;
  int error_status_ = 0;  // of an error inside a 200
  Body body_kind_ = Body::kUnknown;
  wire::FinishReason finish_ = wire::FinishReason::kNone;
  bool want_stream_ = false;
  bool stamp_every_chunk_ = false;
  bool says_event_stream_ = false;
  bool says_json_ = false;
  bool done_ = false;
  bool error_seen_ = false;
  bool broken_ = false;
};

}  // namespace tutti::target
