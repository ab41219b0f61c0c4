#pragma once

// What the mock needs to know of an OpenAI chat or completions request, of SGLang's /generate or
// of a video request. The document is parsed
// whole (simdjson, hidden in the .cc), so that broken JSON is refused as a real server would refuse
// it. One reader per thread, reused; views into it live until the next read().

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tutti::mock_llm {

enum class Api : std::uint8_t { kChat, kCompletions, kGenerate, kVideos };

struct ChatRequest {
  bool stream = false;
  bool include_usage = false;               // stream_options.include_usage
  bool continuous_usage = false;            // stream_options.continuous_usage_stats
  std::optional<std::uint64_t> max_tokens;  // max_completion_tokens before max_tokens
  std::string_view model;                   // unescaped; empty when absent
  std::string_view fault;                   // the field tutti_fault
};

class ChatReader {
 public:
  ChatReader();
  ~ChatReader();
  ChatReader(const ChatReader&) = delete;
  ChatReader& operator=(const ChatReader&) = delete;

  // The error is a sentence for the 400 answer.
  tl::expected<ChatRequest, std::string> read(std::string_view body, Api api);

  // Of the request read last: blank-separated words of all messages or of the prompt; a prompt of
  // token ids counts its ids.
  std::uint32_t prompt_words() const;
  // The last user message's text (its text parts joined by a blank), or the prompt.
  std::string echo_text() const;

 private:
  struct Document;
  std::unique_ptr<Document> document_;
};

}  // namespace tutti::mock_llm
