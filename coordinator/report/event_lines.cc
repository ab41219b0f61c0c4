#include "coordinator/report/event_lines.h"

#include <fmt/format.h>

#include "common/text/json_read.h"
#include "common/text/json_write.h"
#include "common/wire/failure_type.h"

namespace tutti::report {
namespace {

using text::append_json_string;

// Already JSON, from our own renderers or an agent; anything else is quoted, so that a damaged
// value cannot damage the line.
void append_json_array(std::string& out, const std::string& json) {
  if (json.empty()) {
    out += "null";
    return;
  }
  const auto value = text::read_json(json);
  if (value && value->is_array()) {
    out += value->to_json();
  } else {
    append_json_string(out, json);
  }
}

// A JSON array that this process rendered: copied without a look inside, but for what would end the
// line.
void append_rendered(std::string& out, const std::string& json) {
  if (json.find('\n') == std::string::npos && !json.empty()) {
    out += json;
  } else {
    append_json_array(out, json);
  }
}

// [first], or [first, rest].
void append_chunks(std::string& out, const std::string& first, const std::string& rest,
                   bool has_rest) {
  out += '[';
  append_json_string(out, first);
  if (has_rest) {
    out += ',';
    append_json_string(out, rest);
  }
  out += ']';
}

// Replies that came as a stream keep the split after the first chunk of the leading kind; whole
// replies are plain strings.
void append_output(std::string& out, const wire::OutputText& output, bool streamed) {
  if (streamed && !output.has_reasoning) {
    if (output.has_content) {
      append_chunks(out, output.content_first, output.content_rest, output.has_rest);
    } else {
      out += "[]";
    }
    out += ",null";
    return;
  }
  append_json_string(out, output.content_first + output.content_rest);
  out += ',';
  if (!output.has_reasoning) {
    out += "null";
  } else if (streamed) {
    append_chunks(out, output.reasoning_first, output.reasoning_rest, output.has_rest);
  } else {
    append_json_string(out, output.reasoning_first + output.reasoning_rest);
  }
}

std::string_view finish_text(wire::FinishReason reason, const std::string& as_sent) {
  switch (reason) {
    case wire::FinishReason::kNone:
      return "";
    case wire::FinishReason::kStop:
      return "stop";
    case wire::FinishReason::kLength:
      return "length";
    case wire::FinishReason::kToolCalls:
      return "tool_calls";
    case wire::FinishReason::kContentFilter:
      return "content_filter";
    case wire::FinishReason::kFunctionCall:
      return "function_call";
    case wire::FinishReason::kOther:
      return as_sent.empty() ? std::string_view("other") : std::string_view(as_sent);
  }
  return "";
}

}  // namespace

void EventLines::begin(std::string_view type, base::Instant at, std::string_view query) {
  out_ += R"({"event_type":")";
  out_ += type;
  out_ += R"(","timestamp_ns":)";
  text::append_json_int(out_, at.ns);
  out_ += R"(,"sample_uuid":")";
  out_ += query;
  out_ += turn_.empty() ? std::string_view(R"(","conversation_id":"","turn":null)")
                        : std::string_view(turn_);
  out_ += R"(,"data":)";
}

void EventLines::set_turn(const TurnName& turn) {
  turn_.clear();
  if (!turn.conversation.empty()) {
    turn_ += R"(","conversation_id":)";
    append_json_string(turn_, turn.conversation);
    turn_ += R"(,"turn":)";
    text::append_json_uint(turn_, turn.turn);
  }
}

void EventLines::session(std::string_view type, base::Instant at) {
  turn_.clear();
  begin(type, at, "");
  out_ += "null";
  end();
}

void EventLines::issued(std::string_view query, base::Instant at, const Prompt& prompt) {
  begin("sample.issued", at, query);
  out_ += R"(["PromptData",)";
  if (prompt.kind == Prompt::Kind::kText) {
    append_json_string(out_, prompt.value);
    out_ += ",null,null,null";
  } else if (prompt.kind == Prompt::Kind::kMessages) {
    out_ += "null,null,";
    append_rendered(out_, prompt.value);
    out_ += ',';
    append_rendered(out_, prompt.tools);
  } else if (prompt.kind == Prompt::Kind::kTokenIds) {
    out_ += "null,";
    append_rendered(out_, prompt.value);
    out_ += ",null,null";
  } else {
    out_ += "null,null,null,null";
  }
  out_ += ",null,null,null]";
  end();
}

void EventLines::chunk(std::string_view query, base::Instant at, bool first) {
  begin(first ? "sample.recv_first" : "sample.recv_non_first", at, query);
  out_ += "null";
  end();
}

void EventLines::error(std::string_view query, base::Instant at, const ledger::Fact& fact,
                       const ledger::Texts& texts) {
  begin("error.generic", at, query);
  out_ += R"(["ErrorData",)";
  append_json_string(out_, wire::failure_type(fact.failure, texts.error_message));
  out_ += ',';
  append_json_string(out_, error_text(fact, texts));
  out_ += ']';
  end();
}

void EventLines::complete(std::string_view query, base::Instant at, const ledger::Fact& fact,
                          const ledger::Texts& texts, std::uint32_t worker) {
  begin("sample.complete", at, query);
  if (fact.ok()) {
    out_ += R"(["TextModelOutput",)";
    append_output(out_, texts.output, fact.streamed);
    out_ += ',';
    append_json_array(out_, texts.output.tool_calls);
    out_ += ']';
    const std::string_view reason = finish_text(fact.finish_reason, texts.finish_text);
    if (!reason.empty()) {
      out_ += R"(,"finish_reason":)";
      append_json_string(out_, reason);
    }
  } else {
    out_ += "null";
  }
  out_ += R"(,"worker_id":)";
  text::append_json_uint(out_, worker);
  end();
}

std::string error_text(const ledger::Fact& fact, const ledger::Texts& texts) {
  if (fact.failure != wire::Failure::kHttpStatus) {
    return texts.error_message;
  }
  const std::string status = fmt::format("HTTP {}", fact.http_status);
  return texts.error_message.rfind(status, 0) == 0 ? texts.error_message
                                                   : status + ": " + texts.error_message;
}

}  // namespace tutti::report
