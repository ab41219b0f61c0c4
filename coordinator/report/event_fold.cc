#include "coordinator/report/event_fold.h"

#include <fmt/format.h>

#include <fstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/text/json_read.h"

namespace tutti::report {
namespace {

using text::JsonValue;

struct OpenRow {
  Row row;
  std::vector<base::Instant> chunk_at;
};

// A text of an event is a string or a list of chunks.
struct Chunks {
  std::string first;
  std::string rest;
  bool listed = false;  // came as a list: there is an "after the first chunk"

  std::string whole() const { return first + rest; }
};

Chunks chunks_of(const JsonValue* value) {
  Chunks out;
  if (value == nullptr || value->is_null()) {
    return out;
  }
  if (value->is_string()) {
    out.first = value->as_string();
    return out;
  }
  out.listed = true;
  for (std::size_t i = 0; i < value->items().size(); ++i) {
    const JsonValue& part = value->items()[i];
    if (part.is_string()) {
      (i == 0 ? out.first : out.rest) += part.as_string();
    }
  }
  return out;
}

wire::FinishReason finish_reason_of(std::string_view text) {
  static const std::unordered_map<std::string_view, wire::FinishReason> kKnown{
      {"stop", wire::FinishReason::kStop},
      {"length", wire::FinishReason::kLength},
      {"tool_calls", wire::FinishReason::kToolCalls},
      {"content_filter", wire::FinishReason::kContentFilter},
      {"function_call", wire::FinishReason::kFunctionCall}};
  const auto known = kKnown.find(text);
  return known == kKnown.end() ? wire::FinishReason::kOther : known->second;
}

std::string join_lines(const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) {
    if (!piece.empty()) {
      out += (out.empty() ? "" : "\n") + piece;
    }
  }
  return out;
}

class EventFold {
 public:
  EventFold(const TokenCounter& counter, const EventFoldOptions& options)
      : counter_(counter), options_(options), fold_({}, options.streaming) {}

  // Empty: fine; else what is wrong with this event.
  std::string take(const JsonValue& event);

  Snapshot finish() {
    for (auto& [uuid, open] : open_) {
      add(open);
    }
    return fold_.finish(options_.state, options_.early_stopping, options_.now);
  }

 private:
  void take_session(std::string_view type, base::Instant at);
  void take_issued(const std::string& uuid, base::Instant at, const JsonValue* data);
  void take_chunk(const std::string& uuid, base::Instant at, bool first);
  void take_error(const std::string& uuid, base::Instant at);
  void take_complete(const std::string& uuid, base::Instant at, const JsonValue& event);
  void count_output(const JsonValue& data, Row& row) const;
  std::int64_t count_prompt(const JsonValue* data) const;
  std::int64_t tokens(std::string_view text) const {
    return text.empty() || !counter_.text ? -1 : counter_.text(text);
  }
  void add(OpenRow& open) {
    open.row.chunk_at = open.chunk_at;
    fold_.add(open.row);
  }

  const TokenCounter& counter_;
  const EventFoldOptions& options_;
  Fold fold_;
  std::unordered_map<std::string, OpenRow> open_;
  bool started_ = false;
  bool ended_ = false;
  bool tracking_ = false;
  std::uint32_t block_ = 0;
};

std::string EventFold::take(const JsonValue& event) {
  const JsonValue* type = event.find("event_type");
  const JsonValue* stamp = event.find("timestamp_ns");
  const JsonValue* uuid = event.find("sample_uuid");
  if (type == nullptr || !type->is_string()) {
    return "no event_type";
  }
  if (stamp == nullptr || stamp->kind() != text::JsonKind::kInt) {
    return "no timestamp_ns";
  }
  if (ended_) {
    return "";
  }
  const base::Instant at{stamp->as_int()};
  const std::string& name = type->as_string();
  if (name.rfind("session.", 0) == 0) {
    take_session(name, at);
    return "";
  }
  if (uuid == nullptr || !uuid->is_string()) {
    return "no sample_uuid";
  }
  const std::string& id = uuid->as_string();
  fold_.see(at);
  if (name == "sample.issued") {
    take_issued(id, at, event.find("data"));
  } else if (name == "sample.recv_first" || name == "sample.recv_non_first") {
    take_chunk(id, at, name == "sample.recv_first");
  } else if (name == "sample.complete") {
    take_complete(id, at, event);
  } else if (name.rfind("error.", 0) == 0) {
    take_error(id, at);
  } else {
    return fmt::format("unknown event_type \"{}\"", name);
  }
  return "";
}

void EventFold::take_session(std::string_view type, base::Instant at) {
  if (type == "session.started" && !started_) {
    started_ = true;
    fold_ = Fold(at, options_.streaming);
  } else if (type == "session.start_performance_tracking" && !tracking_) {
    tracking_ = true;
    block_ = fold_.begin_tracking(at);
  } else if (type == "session.stop_performance_tracking") {
    tracking_ = false;
  } else if (type == "session.ended") {
    ended_ = true;
  }
  fold_.see(at);
}

void EventFold::take_issued(const std::string& uuid, base::Instant at, const JsonValue* data) {
  OpenRow& open = open_[uuid];
  open.row.tracked = tracking_;
  open.row.block = block_;
  open.row.issued_at = at;
  open.row.prompt_tokens = tracking_ ? count_prompt(data) : -1;
}

void EventFold::take_chunk(const std::string& uuid, base::Instant at, bool first) {
  const auto open = open_.find(uuid);
  if (open == open_.end()) {
    return;
  }
  if (first) {
    open->second.row.first_token_at = at;
  } else {
    open->second.chunk_at.push_back(at);
  }
}

void EventFold::take_error(const std::string& uuid, base::Instant at) {
  const auto open = open_.find(uuid);
  if (open == open_.end()) {
    fold_.add_stray_error(at);
  } else {
    ++open->second.row.errors;
  }
}

void EventFold::take_complete(const std::string& uuid, base::Instant at, const JsonValue& event) {
  const auto open = open_.find(uuid);
  if (open == open_.end()) {
    fold_.add_stray_completion(at);
    return;
  }
  Row& row = open->second.row;
  row.completed_at = at;
  const JsonValue* reason = event.find("finish_reason");
  if (reason != nullptr && reason->is_string()) {
    row.finish_reason = finish_reason_of(reason->as_string());
  }
  const JsonValue* data = event.find("data");
  if (row.tracked && data != nullptr && data->is_array() && data->items().size() >= 2) {
    count_output(*data, row);
  }
  add(open->second);
  open_.erase(open);
}

void EventFold::count_output(const JsonValue& data, Row& row) const {
  const auto part = [&](std::size_t i) {
    return i < data.items().size() ? &data.items()[i] : nullptr;
  };
  const Chunks output = chunks_of(part(1));
  const Chunks reasoning = chunks_of(part(2));
  const JsonValue* calls = part(3);
  const bool has_reasoning = !reasoning.whole().empty();
  const bool has_calls = calls != nullptr && calls->is_array() && !calls->items().empty();
  if (!has_reasoning && !has_calls) {
    row.output_tokens = tokens(output.whole());
    row.tokens_after_first = output.listed ? tokens(output.rest) : -1;
    return;
  }
  const std::string calls_json = has_calls ? calls->to_json() : "";
  row.output_tokens = tokens(join_lines({output.whole(), reasoning.whole(), calls_json}));
  if (has_reasoning) {
    const std::string rest = reasoning.listed ? reasoning.rest : "";
    row.tokens_after_first = tokens(join_lines({output.whole(), rest, calls_json}));
  } else if (!output.whole().empty()) {
    row.tokens_after_first = tokens(join_lines({output.listed ? output.rest : "", calls_json}));
  }
}

std::int64_t EventFold::count_prompt(const JsonValue* data) const {
  if (data == nullptr || !data->is_array()) {
    return -1;
  }
  const auto& items = data->items();
  if (items.size() > 2 && items[2].is_array()) {
    return static_cast<std::int64_t>(items[2].items().size());
  }
  if (items.size() > 1 && items[1].is_string() && !items[1].as_string().empty()) {
    return tokens(items[1].as_string());
  }
  if (items.size() > 3 && items[3].is_array() && counter_.messages) {
    return counter_.messages(items[3].to_json());
  }
  return -1;
}

}  // namespace

base::Result<Snapshot> fold_events(const std::string& path, const TokenCounter& counter,
                                   const EventFoldOptions& options) {
  std::ifstream in(path);
  if (!in) {
    return base::fail(base::ExitCode::kInput, fmt::format("cannot read {}", path));
  }
  EventFold fold(counter, options);
  std::string line;
  for (std::uint64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) {
      continue;
    }
    const auto event = text::read_json(line);
    const std::string wrong = event ? fold.take(*event) : event.error().reason;
    if (!wrong.empty()) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("{}:{}: not an event: {}", path, number, wrong));
    }
  }
  return fold.finish();
}

}  // namespace tutti::report
