// The answers of the two APIs that are not OpenAI's: SGLang's /generate and video generation.

#include <fmt/format.h>

#include "tests/mock_llm/reply.h"

namespace tutti::mock_llm {

// A document of SGLang's /generate: all words up to `end`, the ids of first … end - 1.
void ReplyWriter::append_frame(const Exchange& exchange, std::uint32_t first, std::uint32_t end,
                               bool last) {
  json_ = R"({"text":")";
  append_words(exchange, 0, end, 0);
  json_ += R"(","output_ids":[)";
  for (std::uint32_t i = first; i < end; ++i) {
    json_ += i == first ? "" : ",";
    json_ += fmt::format("{}", i + 1);
  }
  json_ += R"(],"meta_info":{"id":")";
  json_ += fmt::format("{:016x}", exchange.number);
  json_ += R"(","finish_reason":)";
  if (!last) {
    json_ += "null";
  } else if (exchange.capped) {
    json_ += R"({"type":"length","length":)";
    json_ += fmt::format("{}", exchange.tokens);
    json_ += '}';
  } else {
    json_ += R"({"type":"stop","matched":0})";
  }
  json_ += R"(,"prompt_tokens":)";
  json_ += fmt::format("{}", exchange.prompt_tokens);
  json_ += R"(,"weight_version":"default","total_retractions":0,"completion_tokens":)";
  json_ += fmt::format("{}", end);
  json_ += R"(,"cached_tokens":0,"e2e_latency":0.0})";
  if (options_.stamp) {
    json_ += R"(,"tutti_sent_ns":)";
    json_ += fmt::format("{}", sent_ns_);
  }
  json_ += '}';
}

void ReplyWriter::append_video(const Exchange& exchange) {
  json_ = R"({"video_id":"video-)";
  json_ += fmt::format("{:016x}", exchange.number);
  json_ += R"(","video_path":"/videos/)";
  json_ += fmt::format("{:016x}", exchange.number);
  json_ += R"(.mp4"})";
}

}  // namespace tutti::mock_llm
