#pragma once

// Feeds a Reply a scripted answer: segments of bytes, each 1 ms after the other, the first at 1 ms.

#include <string>
#include <string_view>
#include <vector>

#include "agent/target/reply.h"

namespace tutti::target {

struct Script {
  std::vector<std::string> segments;
  EndKind end = EndKind::kComplete;
  int status = 200;
  std::string content_type = "text/event-stream; charset=utf-8";
  bool want_stream = true;
  bool stamp_every_chunk = true;
  base::ApiType api = base::ApiType::kOpenAiChat;
  std::string detail;
};

inline base::Instant at_ms(std::int64_t ms) { return base::Instant{ms * 1'000'000}; }

inline wire::Record play_on(Reply& reply, const Script& script) {
  wire::Record record;
  reply.start(script.want_stream, script.stamp_every_chunk);
  if (script.status != 0) {
    reply.on_header(script.status, script.content_type);
  }
  std::int64_t ms = 0;
  for (const std::string& segment : script.segments) {
    const std::vector<char> exact(segment.begin(), segment.end());  // so that overreads show
    reply.on_body(std::string_view(exact.data(), exact.size()), at_ms(++ms));
  }
  reply.on_end(script.end, at_ms(ms + 1), record, script.detail);
  return record;
}

inline wire::Record play(const Script& script) {
  Reply reply(script.api);
  return play_on(reply, script);
}

inline Script stream(std::vector<std::string> segments) {
  Script script;
  script.segments = std::move(segments);
  return script;
}

inline std::string event(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }
inline std::string delta(std::string_view members) {
  return event(
      "{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","
      "\"choices\":[{\"index\":0,\"delta\":{" +
      std::string(members) + "},\"logprobs\":null,\"finish_reason\":null}]}");
}
inline std::string finish(std::string_view reason) {
  return event("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" +
               std::string(reason) + "\"}]}");
}
inline std::string content(std::string_view text) {
  return delta("\"content\":\"" + std::string(text) + "\"");
}
inline const std::string kDone = "data: [DONE]\n\n";

// What a record says, without its stamps: equal for every way of cutting the same bytes.
inline std::string facts_of(const wire::Record& r) {
  std::string text;
  const auto put = [&text](std::string_view name, const std::string& value) {
    text += std::string(name) + "=" + value + "\n";
  };
  put("outcome", std::to_string(static_cast<int>(r.outcome)));
  put("failure", std::to_string(static_cast<int>(r.failure)));
  put("finish", std::to_string(static_cast<int>(r.finish_reason)) + r.finish_text);
  put("status", std::to_string(r.http_status));
  put("streamed", std::to_string(static_cast<int>(r.streamed)));
  put("events", std::to_string(r.content_events) + "/" + std::to_string(r.malformed_events));
  put("usage", std::to_string(r.prompt_tokens) + "/" + std::to_string(r.completion_tokens) + "/" +
                   std::to_string(r.reasoning_tokens));
  put("error", r.error_message);
  put("content", r.output.content_first + "|" + r.output.content_rest);
  put("reasoning", r.output.reasoning_first + "|" + r.output.reasoning_rest);
  put("tools", r.output.tool_calls);
  put("has", std::to_string(static_cast<int>(r.output.has_content)) +
                 std::to_string(static_cast<int>(r.output.has_reasoning)) +
                 std::to_string(static_cast<int>(r.output.has_rest)));
  put("chunks", std::to_string(r.chunk_at.size()));
  put("first", std::to_string(static_cast<int>(r.first_token_at.is_set())));
  return text;
}

inline std::string joined(const std::vector<std::string>& segments) {
  std::string all;
  for (const std::string& segment : segments) {
    all += segment;
  }
  return all;
}

}  // namespace tutti::target
