#pragma once

// HttpReader: the framing of one HTTP/1.x reply to a POST, fed bytes cut anywhere. Any cut gives
// the same result. Body bytes are handed out as spans of what was fed, never copied; a line is
// copied only when it is cut, into a buffer that keeps its capacity. Tolerated: bare LF as a line
// end, folded lines of fields we do not read, chunk extensions, trailers (skipped), HTTP/1.0.
// Interim replies (1xx) are skipped, but 101 is final: nobody asked for it. Refused, with words:
// anything that is not HTTP/1.x, contradicting or unreadable lengths, unknown transfer codings,
// fields without a name, lines or heads beyond the limits. Pure; one owner.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/target/known_head.h"

namespace tutti::target {

struct HttpLimits {
  std::size_t line_bytes_max = std::size_t{64} << 10;
  std::size_t head_bytes_max = std::size_t{256} << 10;  // interim heads, head and trailers
  std::size_t chunk_line_bytes_max = std::size_t{4} << 10;
};

class HttpReader {
 public:
  enum class Found : std::uint8_t {
    kMore,  // every byte was taken; the reply goes on
    kHead,  // the final header is whole: status() and content_type() hold. Once per reply
    kBody,  // a span of the body
    kDone,  // the reply is whole; bytes left over do not belong to it
    kBad,   // problem() says why; nothing more can be read
  };
  // What the end of the connection means.
  enum class Ending : std::uint8_t { kWhole, kNothing, kCutHead, kCutBody, kBad };

  // `known`: what readers of the same thread learn from one another, outlives them; null: nothing.
  // Makes no difference to what is read.
  explicit HttpReader(HttpLimits limits = {}, KnownHead* known = nullptr)
      : limits_(limits), known_(known) {}

  // A new reply.
  void start();
  // Takes bytes off the front of `bytes` up to the next thing found. kBody sets `body`, a view into
  // `bytes`. Call again until kMore, kDone or kBad.
  Found next(std::string_view& bytes, std::string_view& body);
  // Without more bytes next() has nothing to say.
  bool wants_bytes() const { return state_ != State::kDone && state_ != State::kBad; }
  // The connection has ended.
  Ending finish();

  int status() const { return head_.status; }
  std::string_view content_type() const { return content_type_; }  // at most 256 bytes
  const std::string& problem() const { return problem_; }
  // Bytes of header lines and trailers so far, interim ones and line ends included.
  std::uint64_t header_bytes() const { return header_bytes_; }
  // After kDone: the connection may carry another request.
  bool keeps_alive() const { return state_ == State::kDone && keeps_alive_; }

 private:
  enum class State : std::uint8_t {
    kStatusLine,  // the header's two come first
    kField,
    kCounted,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kUntilClose,
    kDone,
    kBad
  };
  enum class Line : std::uint8_t { kWhole, kPart, kTooLong };
  enum class Field : std::uint8_t { kNone, kOther, kOurs };

  Line take_line(std::string_view& bytes, std::size_t bytes_max, std::string_view& line);
  Found bad(std::string problem);
  Found read_line(std::string_view& bytes);
  Found read_chunk_line(std::string_view& bytes);
  bool read_status_line(std::string_view line);
  bool begins_well(std::string_view bytes);
  bool read_field(std::string_view line);
  bool read_content_length(std::string_view value);
  bool read_transfer_encoding(std::string_view value);
  void read_connection(std::string_view value);
  Found end_head();
  void begin_head();
  bool take_known_head(std::string_view& bytes);
  void learn_head(const char* end);
  bool read_plain_chunk_size(std::string_view& bytes);
  bool read_chunk_size(std::string_view line);
  Found read_chunk_end(std::string_view& bytes);
  Found take_span(std::string_view& bytes, std::string_view& body);

  HttpLimits limits_;
  std::string kept_;  // a line whose end has not come yet
  std::string content_type_;
  std::string problem_;
  std::uint64_t header_bytes_ = 0;
  std::uint64_t left_ = 0;     // of the counted body or of the chunk
  std::size_t head_left_ = 0;  // what the head may still take
  KnownHead* known_;
  HeadFacts head_;
  const char* head_at_ = nullptr;  // its first byte; null: not all of it lies there in one piece
  std::string_view length_said_;   // as head_at_
  int lengths_said_ = 0;
  State state_ = State::kDone;
  Field last_field_ = Field::kNone;  // what a folded line would go on
  bool keeps_alive_ = false;
  bool cr_seen_ = false;
  bool any_byte_ = false;
};

}  // namespace tutti::target
