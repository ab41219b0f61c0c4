#include "common/model/reply_tokens.h"

#include <string>

namespace tutti::model {

base::Result<ReplyTokens> count_reply(const TokenCounter& counter, const ReplyChunks& reply) {
  ReplyTokens out;
  if (reply.empty()) {
    return out;
  }
  std::string content(reply.content_first);
  content += reply.content_rest;
  std::string reasoning(reply.reasoning_first);
  reasoning += reply.reasoning_rest;
  const auto whole = counter.reply({content, reasoning, reply.tool_calls});
  if (!whole) {
    return tl::unexpected(whole.error());
  }
  out.output = static_cast<std::int64_t>(whole->tokens);
  out.without_template = whole->without_template;
  if (content.empty() && reasoning.empty()) {
    return out;
  }
  const ReplyText rest = reasoning.empty()
                             ? ReplyText{reply.content_rest, {}, reply.tool_calls}
                             : ReplyText{content, reply.reasoning_rest, reply.tool_calls};
  const auto after = counter.reply(rest);
  if (!after) {
    return tl::unexpected(after.error());
  }
  out.after_first = static_cast<std::int64_t>(after->tokens);
  return out;
}

}  // namespace tutti::model
