#include "tests/mock_llm/reply.h"

#include <algorithm>
#include <charconv>

#include "tests/mock_llm/draw.h"

namespace tutti::mock_llm {
namespace {

constexpr std::string_view kVocabulary[] = {
    "the",   "of",    "a",     "and",   "to",     "in",    "is",      "it",     "that",   "as",
    "with",  "for",   "one",   "all",   "time",   "sound", "water",   "light",  "stone",  "house",
    "river", "music", "voice", "paper", "garden", "north", "south",   "small",  "large",  "open",
    "clear", "slow",  "quick", "bell",  "road",   "night", "morning", "summer", "winter", "green",
    "blue",  "white", "seven", "four",  "many",   "other", "under",   "over",   "after",  "before",
    "plays", "sings", "turns", "keeps", "gives",  "finds", "holds",   "tells",  "moves",  "rests",
    "while", "where", "when",  "then"};

template <class Int>
void append_int(std::string& out, Int value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

void append_hex16(std::string& out, std::uint64_t value) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  char digits[16];
  for (int i = 15; i >= 0; --i) {
    digits[i] = kDigits[value & 15U];
    value >>= 4;
  }
  out.append(digits, sizeof digits);
}

std::string_view reason_phrase(int status) {
  struct Phrase {
    int status;
    std::string_view text;
  };
  static constexpr Phrase kPhrases[] = {
      {200, "OK"},
      {302, "Found"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) {
      return phrase.text;
    }
  }
  return "Status";
}

void append_status_line(std::string& out, int status, bool http11) {
  out += http11 ? "HTTP/1.1 " : "HTTP/1.0 ";
  append_int(out, status);
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n";
}

// HTTP/1.1 keeps a connection unless told otherwise, HTTP/1.0 closes it.
void append_connection(std::string& out, bool http11, bool keep_alive) {
  if (http11 != keep_alive) {
    out += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  }
}

std::string_view error_type(int status) {
  if (status == 404) {
    return "not_found_error";
  }
  if (status == 429) {
    return "rate_limit_error";
  }
  return status >= 500 ? "server_error" : "invalid_request_error";
}

void append_error_object(std::string& out, int status, std::string_view message) {
  out += R"({"error":{"message":")";
  append_json_escaped(out, message);
  out += R"(","type":")";
  out += error_type(status);
  out += R"(","param":null,"code":)";
  append_int(out, status);
  out += "}}";
}

}  // namespace

ReplyWriter::ReplyWriter(const MockOptions& options, const std::vector<std::string>& models)
    : options_(options),
      models_(models),
      line_end_(options.framing == Framing::kLf     ? "\n"
                : options.framing == Framing::kCrlf ? "\r\n"
                                                    : "\r") {}

Piece ReplyWriter::piece(const Exchange& exchange, std::uint32_t first, std::uint32_t event) const {
  const std::uint32_t part_end = first < exchange.reasoning ? exchange.reasoning : exchange.tokens;
  return {first, std::min(options_.tokens_per_chunk, part_end - first), event};
}

std::uint32_t ReplyWriter::event_count(const Exchange& exchange) const {
  const auto events = [&](std::uint32_t tokens) {
    return tokens / options_.tokens_per_chunk + (tokens % options_.tokens_per_chunk != 0 ? 1 : 0);
  };
  return events(exchange.reasoning) + events(exchange.tokens - exchange.reasoning);
}

std::string_view ReplyWriter::finish_reason(const Exchange& exchange) const {
  if (exchange.capped) {
    return "length";
  }
  return options_.tool_call && exchange.api == Api::kChat ? "tool_calls" : "stop";
}

// {"id":…,"object":…,"created":…,"model":…,"choices":[
void ReplyWriter::open_json(const Exchange& exchange, bool whole) {
  const bool chat = exchange.api == Api::kChat;
  json_ = chat ? R"({"id":"chatcmpl-)" : R"({"id":"cmpl-)";
  append_hex16(json_, exchange.number);
  json_ += !chat   ? R"(","object":"text_completion","created":)"
           : whole ? R"(","object":"chat.completion","created":)"
                   : R"(","object":"chat.completion.chunk","created":)";
  append_int(json_, exchange.created_unix_s);
  json_ += R"(,"model":")";
  json_ += models_[exchange.model];
  json_ += R"(","choices":[)";
}

void ReplyWriter::append_usage(const Exchange& exchange, std::uint32_t completion_tokens) {
  json_ += R"(,"usage":{"prompt_tokens":)";
  append_int(json_, exchange.prompt_tokens);
  json_ += R"(,"total_tokens":)";
  append_int(json_, std::uint64_t{exchange.prompt_tokens} + completion_tokens);
  json_ += R"(,"completion_tokens":)";
  append_int(json_, completion_tokens);
  if (exchange.reasoning != 0) {
    json_ += R"(,"completion_tokens_details":{"reasoning_tokens":)";
    append_int(json_, std::min(completion_tokens, exchange.reasoning));
    json_ += '}';
  }
  json_ += '}';
}

// Ends a stream event: the choices' bracket, usage as the rule wants it, the stamp.
void ReplyWriter::close_json(const Exchange& exchange, std::uint32_t tokens_so_far,
                             std::int64_t sent_ns) {
  json_ += ']';
  if (exchange.usage == UsageRule::kContinuous) {
    append_usage(exchange, tokens_so_far);
  } else if (exchange.usage == UsageRule::kAsked) {
    json_ += R"(,"usage":null)";
  }
  if (options_.stamp) {
    json_ += R"(,"tutti_sent_ns":)";
    append_int(json_, sent_ns);
  }
  json_ += '}';
}

// Words first … first + count - 1, with a blank before each but word `start`.
void ReplyWriter::append_words(const Exchange& exchange, std::uint32_t first, std::uint32_t count,
                               std::uint32_t start) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    if (i != start) {
      json_ += ' ';
    }
    if (exchange.echo != nullptr && !exchange.echo->ends.empty()) {
      const EchoWords& echo = *exchange.echo;
      const std::size_t word = i % echo.ends.size();
      const std::uint32_t begin = word == 0 ? 0 : echo.ends[word - 1];
      json_.append(echo.escaped, begin, echo.ends[word] - begin);
    } else if (options_.text == TextKind::kWords) {
      RequestDraws draws(exchange.seed, std::uint64_t{i} << 32);
      json_ += kVocabulary[draws.next_u64() % std::size(kVocabulary)];
    } else if (options_.text == TextKind::kStamp) {
      append_int(json_, sent_ns_);
    } else {
      json_ += "tutti";
    }
  }
}

// A piece of the arguments {"text":"…"}, escaped as a JSON string within JSON. Words are escaped
// already; what their backslashes need is one more round.
void ReplyWriter::append_tool_arguments(const Exchange& exchange, std::uint32_t first,
                                        std::uint32_t count) {
  const std::uint32_t start = exchange.reasoning;
  if (first == start) {
    json_ += R"({\"text\":\")";
  }
  const std::size_t before = json_.size();
  append_words(exchange, first, count, start);
  const std::string words = json_.substr(before);
  json_.resize(before);
  append_json_escaped(json_, words);
  if (first + count == exchange.tokens) {
    json_ += R"(\"})";
  }
}

void ReplyWriter::append_delta(const Exchange& exchange, const Piece& piece) {
  if (piece.first < exchange.reasoning) {
    json_ += '"';
    json_ += options_.reasoning_key;
    json_ += R"(":")";
    append_words(exchange, piece.first, piece.count, 0);
    json_ += '"';
    return;
  }
  if (!options_.tool_call) {
    json_ += R"("content":")";
    append_words(exchange, piece.first, piece.count, exchange.reasoning);
    json_ += '"';
    return;
  }
  json_ += R"("tool_calls":[{"index":0,)";
  if (piece.first == exchange.reasoning) {
    json_ += R"("id":"call_)";
    append_hex16(json_, exchange.number);
    json_ += R"(","type":"function","function":{"name":"write","arguments":")";
  } else {
    json_ += R"("function":{"arguments":")";
  }
  append_tool_arguments(exchange, piece.first, piece.count);
  json_ += R"("}}])";
}

void ReplyWriter::append_event(std::string& out, const Exchange& exchange,
                               std::string_view event_name) const {
  static constexpr std::string_view kData = "data: ";
  static constexpr std::string_view kEvent = "event: ";
  std::size_t bytes = kData.size() + json_.size() + 2 * line_end_.size();
  if (!event_name.empty()) {
    bytes += kEvent.size() + event_name.size() + line_end_.size();
  }
  if (exchange.chunked) {
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, bytes, 16);
    out.append(digits, end.ptr);
    out += "\r\n";
  }
  if (!event_name.empty()) {
    out += kEvent;
    out += event_name;
    out += line_end_;
  }
  out += kData;
  out += json_;
  out += line_end_;
  out += line_end_;
  if (exchange.chunked) {
    out += "\r\n";
  }
}

void ReplyWriter::stream_head(std::string& out, const Exchange& exchange) const {
  append_status_line(out, 200, exchange.http11);
  out += "Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n";
  if (exchange.chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  append_connection(out, exchange.http11, exchange.keep_alive);
  out += "\r\n";
}

void ReplyWriter::role_event(std::string& out, const Exchange& exchange, std::int64_t sent_ns) {
  open_json(exchange, false);
  json_ += R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
           R"("finish_reason":null})";
  close_json(exchange, 0, sent_ns);
  append_event(out, exchange, {});
}

void ReplyWriter::content_event(std::string& out, const Exchange& exchange, const Piece& piece,
                                std::int64_t sent_ns) {
  sent_ns_ = sent_ns;
  if (exchange.api == Api::kGenerate) {
    append_frame(exchange, piece.first, piece.first + piece.count, false);
  } else {
    open_json(exchange, false);
    if (exchange.api == Api::kChat) {
      json_ += R"({"index":0,"delta":{)";
      append_delta(exchange, piece);
      json_ += R"(},"logprobs":null,"finish_reason":null})";
    } else {
      json_ += R"({"index":0,"text":")";
      append_words(exchange, piece.first, piece.count, 0);
      json_ += R"(","logprobs":null,"finish_reason":null})";
    }
    close_json(exchange, piece.first + piece.count, sent_ns);
  }
  if (exchange.fault.kind == FaultKind::kMalformed && exchange.fault.number == piece.event) {
    json_.resize(json_.size() * 2 / 3);
  }
  append_event(out, exchange, {});
}

void ReplyWriter::finish_event(std::string& out, const Exchange& exchange, std::int64_t sent_ns) {
  if (exchange.api == Api::kGenerate) {  // the whole text once more, no new token
    sent_ns_ = sent_ns;
    append_frame(exchange, exchange.tokens, exchange.tokens, true);
    append_event(out, exchange, {});
    return;
  }
  open_json(exchange, false);
  json_ += exchange.api == Api::kChat ? R"({"index":0,"delta":{},"logprobs":null,"finish_reason":")"
                                      : R"({"index":0,"text":"","logprobs":null,"finish_reason":")";
  json_ += finish_reason(exchange);
  json_ += R"("})";
  close_json(exchange, exchange.tokens, sent_ns);
  append_event(out, exchange, {});
}

void ReplyWriter::usage_event(std::string& out, const Exchange& exchange, std::int64_t sent_ns) {
  if (exchange.usage == UsageRule::kOff || exchange.api == Api::kGenerate) {
    return;  // every frame of SGLang counts
  }
  open_json(exchange, false);
  json_ += ']';
  append_usage(exchange, exchange.tokens);
  if (options_.stamp) {
    json_ += R"(,"tutti_sent_ns":)";
    append_int(json_, sent_ns);
  }
  json_ += '}';
  append_event(out, exchange, {});
}

void ReplyWriter::error_event(std::string& out, const Exchange& exchange, bool named) {
  json_.clear();
  append_error_object(json_, 500, "the mock was told to fail here");
  append_event(out, exchange, named ? "error" : "");
}

void ReplyWriter::done_event(std::string& out, const Exchange& exchange) {
  json_ = "[DONE]";
  append_event(out, exchange, {});
}

void ReplyWriter::body_end(std::string& out, const Exchange& exchange) const {
  if (exchange.chunked) {
    out += "0\r\n\r\n";
  }
}

void ReplyWriter::append_message(const Exchange& exchange) {
  const std::uint32_t answer = exchange.tokens - exchange.reasoning;
  json_ += R"({"index":0,"message":{"role":"assistant","content":)";
  if (options_.tool_call) {
    json_ += R"(null,"tool_calls":[{"id":"call_)";
    append_hex16(json_, exchange.number);
    json_ += R"(","type":"function","function":{"name":"write","arguments":")";
    if (answer == 0) {
      json_ += "{}";
    } else {
      append_tool_arguments(exchange, exchange.reasoning, answer);
    }
    json_ += R"("}}])";
  } else {
    json_ += '"';
    append_words(exchange, exchange.reasoning, answer, exchange.reasoning);
    json_ += '"';
  }
  if (exchange.reasoning != 0) {
    json_ += R"(,")";
    json_ += options_.reasoning_key;
    json_ += R"(":")";
    append_words(exchange, 0, exchange.reasoning, 0);
    json_ += '"';
  }
  json_ += R"(},"logprobs":null,"finish_reason":")";
}

void ReplyWriter::document(std::string& out, const Exchange& exchange, std::int64_t sent_ns) {
  sent_ns_ = sent_ns;
  if (exchange.api == Api::kGenerate || exchange.api == Api::kVideos) {
    if (exchange.api == Api::kGenerate) {
      append_frame(exchange, 0, exchange.tokens, true);
    } else {
      append_video(exchange);
    }
    append_answer(out, {200, "application/json", json_, exchange.http11, exchange.keep_alive});
    return;
  }
  open_json(exchange, true);
  if (exchange.api == Api::kChat) {
    append_message(exchange);
  } else {
    json_ += R"({"index":0,"text":")";
    append_words(exchange, 0, exchange.tokens, 0);
    json_ += R"(","logprobs":null,"finish_reason":")";
  }
  json_ += finish_reason(exchange);
  json_ += R"("}])";
  if (options_.usage == UsageRule::kOff) {
    json_ += R"(,"usage":null)";
  } else {
    append_usage(exchange, exchange.tokens);
  }
  json_ += '}';
  append_answer(out, {200, "application/json", json_, exchange.http11, exchange.keep_alive});
}

bool ReplyWriter::spoil_document(std::string& out, const Exchange& exchange) {
  const std::size_t body = out.find("\r\n\r\n") + 4;
  switch (exchange.fault.kind) {
    case FaultKind::kResetAfter:
    case FaultKind::kTruncate:
    case FaultKind::kStall:
      out.resize(body + (out.size() - body) / 2);
      return true;
    case FaultKind::kMalformed:
      json_ = out.substr(body, (out.size() - body) * 2 / 3);
      break;
    case FaultKind::kErrorEvent:
    case FaultKind::kNamedError:
      json_.clear();
      append_error_object(json_, 500, "the mock was told to fail here");
      break;
    default:
      return exchange.fault.kind == FaultKind::kSlowHeaders ||
             exchange.fault.kind == FaultKind::kJson || exchange.fault.kind == FaultKind::kDrip;
  }
  out.clear();
  append_answer(out, {200, "application/json", json_, exchange.http11, exchange.keep_alive});
  return true;
}

void ReplyWriter::models_list(std::string& out, const Exchange& exchange,
                              std::size_t named_models) {
  json_ = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < named_models; ++i) {
    json_ += i == 0 ? "" : ",";
    json_ += R"({"id":")";
    json_ += models_[i];
    json_ += R"(","object":"model","created":)";
    append_int(json_, exchange.created_unix_s);
    json_ += R"(,"owned_by":"tutti-mock"})";
  }
  json_ += "]}";
  append_answer(out, {200, "application/json", json_, exchange.http11, exchange.keep_alive});
}

void append_answer(std::string& out, const HttpAnswer& answer) {
  append_status_line(out, answer.status, answer.http11);
  out += "Content-Type: ";
  out += answer.content_type;
  out += "\r\nContent-Length: ";
  append_int(out, answer.body.size());
  out += "\r\n";
  if (answer.status == 429 || answer.status == 503) {
    out += "Retry-After: 1\r\n";
  } else if (answer.status == 405) {
    out += "Allow: GET, POST\r\n";
  }
  append_connection(out, answer.http11, answer.keep_alive);
  out += "\r\n";
  out += answer.body;
}

void append_error(std::string& out, int status, std::string_view message, bool http11,
                  bool keep_alive) {
  std::string body;
  append_error_object(body, status, message);
  append_answer(out, {status, "application/json", body, http11, keep_alive});
}

}  // namespace tutti::mock_llm
