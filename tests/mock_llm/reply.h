#pragma once

// The bytes of the mock's answers: HTTP heads, server-sent events in HTTP chunks, single JSON
// documents and errors, in the form of an OpenAI server. Appends to strings it is given; pure, and
// reads no clock. One writer per thread (it keeps a scratch buffer).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/mock_llm/chat_request.h"
#include "tests/mock_llm/fault.h"
#include "tests/mock_llm/options.h"

namespace tutti::mock_llm {

// The words of a prompt, JSON-escaped, back to back; word i ends at ends[i].
struct EchoWords {
  std::string escaped;
  std::vector<std::uint32_t> ends;
};
EchoWords split_echo(std::string_view text);

void append_json_escaped(std::string& out, std::string_view text);

// What one answered request will be; fixed when the request has been read.
struct Exchange {
  std::uint64_t number = 0;  // of the request, from 1
  std::uint64_t seed = 0;
  std::int64_t ttft_ns = 0;
  std::int64_t gap_ns = 0;
  std::uint32_t created_unix_s = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tokens = 0;     // of the whole output
  std::uint32_t reasoning = 0;  // the first of them
  std::uint16_t model = 0;      // index into the writer's models
  Api api = Api::kChat;
  UsageRule usage = UsageRule::kOff;  // kAsked here: null in each event, numbers in the last
  bool capped = false;                // finish_reason length
  bool stream = false;
  bool chunked = false;  // HTTP/1.1: the stream's length is told by chunks, else by the close
  bool http11 = true;
  bool keep_alive = true;
  Fault fault;
  std::unique_ptr<EchoWords> echo;
};

// What one content event carries: tokens first … first + count - 1, all reasoning or all answer.
struct Piece {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t event = 1;  // which content event of the stream, from 1
};

class ReplyWriter {
 public:
  // `models` holds JSON-escaped names and may grow; both must outlive the writer.
  ReplyWriter(const MockOptions& options, const std::vector<std::string>& models);

  // Streams. `sent_ns` goes into the event when --stamp is on, and is its words with --text stamp.
  void stream_head(std::string& out, const Exchange& exchange) const;
  void role_event(std::string& out, const Exchange& exchange, std::int64_t sent_ns);
  void content_event(std::string& out, const Exchange& exchange, const Piece& piece,
                     std::int64_t sent_ns);
  void finish_event(std::string& out, const Exchange& exchange, std::int64_t sent_ns);
  void usage_event(std::string& out, const Exchange& exchange, std::int64_t sent_ns);
  void error_event(std::string& out, const Exchange& exchange, bool named);
  void done_event(std::string& out, const Exchange& exchange);
  void body_end(std::string& out, const Exchange& exchange) const;

  // Head and body. `sent_ns` is the document's words with --text stamp.
  void document(std::string& out, const Exchange& exchange, std::int64_t sent_ns = 0);
  // Applies the exchange's fault to a document of its own; true when it changed the bytes (cut them
  // in half, broke the JSON, put an error in its place) or will change how they are sent.
  bool spoil_document(std::string& out, const Exchange& exchange);
  void models_list(std::string& out, const Exchange& exchange, std::size_t named_models);

  // The piece after `first` tokens in `event - 1` events; first < exchange.tokens.
  Piece piece(const Exchange& exchange, std::uint32_t first, std::uint32_t event) const;
  // Content events of the whole answer.
  std::uint32_t event_count(const Exchange& exchange) const;

 private:
  void open_json(const Exchange& exchange, bool whole);
  void close_json(const Exchange& exchange, std::uint32_t tokens_so_far, std::int64_t sent_ns);
  void append_usage(const Exchange& exchange, std::uint32_t completion_tokens);
  void append_words(const Exchange& exchange, std::uint32_t first, std::uint32_t count,
                    std::uint32_t start);
  void append_delta(const Exchange& exchange, const Piece& piece);
  void append_message(const Exchange& exchange);
  void append_frame(const Exchange& exchange, std::uint32_t first, std::uint32_t end, bool last);
  void append_video(const Exchange& exchange);
  void append_tool_arguments(const Exchange& exchange, std::uint32_t first, std::uint32_t count);
  std::string_view finish_reason(const Exchange& exchange) const;
  void append_event(std::string& out, const Exchange& exchange, std::string_view event_name) const;

  const MockOptions& options_;
  const std::vector<std::string>& models_;
  std::string_view line_end_;
  std::string json_;          // the event being written
  std::int64_t sent_ns_ = 0;  // of the event being written
};

struct HttpAnswer {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string_view body;
  bool http11 = true;
  bool keep_alive = true;
};
void append_answer(std::string& out, const HttpAnswer& answer);

// An OpenAI error object with head; 429 and 503 carry Retry-After, 405 Allow.
void append_error(std::string& out, int status, std::string_view message, bool http11,
                  bool keep_alive);

}  // namespace tutti::mock_llm
