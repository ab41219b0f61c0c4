#pragma once

// Reads HTTP/1.0 and 1.1 requests from a byte stream cut anywhere: heads, Content-Length and
// chunked bodies, pipelining. A whole request inside one read is handed out without copying its
// body. What is malformed, ambiguous or too large is refused with the status a server should
// answer. One reader per connection, or a shared one for requests that arrive whole; one thread.

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::mock_llm {

enum class Route : std::uint8_t {
  kUnknown,
  kChat,
  kCompletions,
  kGenerate,  // SGLang
  kVideos,
  kModels,
  kHealth,
  kMetrics
};
enum class Method : std::uint8_t { kOther, kGet, kPost };

struct RequestLimits {
  std::size_t head_bytes_max = 64 << 10;
  std::size_t body_bytes_max = 64 << 20;
};

struct RequestHead {
  Method method = Method::kOther;
  Route route = Route::kUnknown;
  bool http11 = true;
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  bool has_length = false;
  std::uint64_t content_length = 0;
  std::string fault;  // the value of x-tutti-fault
};

// Why a request was refused; status 0: it was not.
struct Refusal {
  int status = 0;
  std::string_view reason;
};

// `text` is a whole head, its blank line included.
Refusal parse_head(std::string_view text, RequestHead& head);

// Length of the head including its blank line, or npos. Looks at text[from..] first (a hint).
std::size_t find_head_end(std::string_view text, std::size_t from);

// RFC 9112 7.1, incremental. Extensions and trailers are skipped, bounded.
class ChunkedBody {
 public:
  // Consumes bytes, appends the data to `body`, stops after the last chunk. A refusal is final.
  std::size_t feed(std::string_view bytes, std::size_t body_bytes_max, std::string& body);
  bool is_done() const { return state_ == State::kDone; }
  const Refusal& refusal() const { return refusal_; }

 private:
  enum class State : std::uint8_t { kSize, kExtension, kData, kDataEnd, kTrailer, kDone, kBad };

  void refuse(int status, std::string_view reason);
  void on_size_byte(char c, std::size_t body_bytes, std::size_t body_bytes_max);
  void on_line_byte(char c);
  void end_size_line();

  State state_ = State::kSize;
  std::uint64_t left_ = 0;  // of the chunk, while its data is read
  std::uint32_t size_digits_ = 0;
  std::uint32_t line_bytes_ = 0;     // of an extension or a trailer line
  std::uint32_t skipped_bytes_ = 0;  // of extensions and trailers, over the whole body
  Refusal refusal_;
};

class RequestReader {
 public:
  enum class State : std::uint8_t { kHead, kBody, kComplete, kRefused };

  explicit RequestReader(const RequestLimits& limits) : limits_(limits) {}

  // Takes bytes of one request at most and says how many; the rest belongs to the next request.
  // Complete or refused readers take nothing until reset().
  std::size_t feed(std::string_view bytes);
  void reset();

  State state() const { return state_; }
  bool is_fresh() const { return state_ == State::kHead && held_.empty(); }
  const RequestHead& head() const { return head_; }
  // Valid until the fed bytes go away or the reader is fed, reset or moved.
  std::string_view body() const { return body_is_held_ ? std::string_view(held_) : body_; }
  const Refusal& refusal() const { return refusal_; }
  // True once per request that asked for 100 Continue and whose body has not come yet.
  bool take_continue();
  std::size_t held_bytes() const { return held_.capacity(); }

 private:
  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  void start_body();
  void refuse(const Refusal& refusal);

  RequestLimits limits_;
  State state_ = State::kHead;
  bool body_is_held_ = false;
  bool continue_sent_ = false;
  RequestHead head_;
  ChunkedBody chunks_;
  Refusal refusal_;
  std::string held_;       // a partial head, then a partial body
  std::string_view body_;  // a body that came whole
};

}  // namespace tutti::mock_llm
