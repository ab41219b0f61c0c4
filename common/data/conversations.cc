#include "common/data/conversations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "common/base/check.h"
#include "common/data/loading.h"
#include "common/data/message_rows.h"
#include "common/text/json_write.h"

namespace tutti::data {

using text::JsonValue;

class ConversationLoader {
 public:
  explicit ConversationLoader(const DatasetRequest& request) : request_(request) {}

  tl::expected<ConversationSet, base::Problems> load() {
    const auto chosen = choose_format(request_);
    if (!chosen) {
      return tl::unexpected<base::Problems>(base::Problems{chosen.error()});
    }
    format_ = chosen->format;
    made_.path_ = request_.path;
    made_.format_ = chosen->name;
    const RowCallbacks callbacks{
        [this](std::string_view column) { return note_column(column); },
        [this](JsonValue&& row, std::size_t line) { return take(std::move(row), line); },
        [this](std::size_t place, std::string reason) {
          problems_.add({place_text(request_.path, format_, place), "", "", std::move(reason)});
        }};
    read_rows(request_.files.empty() ? std::vector{request_.path} : request_.files, format_,
              callbacks);
    end_conversation();
    check_columns();
    if (problems_.empty() && made_.samples_.empty()) {
      problems_.add({request_.path, "", "", "the file has no messages"});
    }
    if (!problems_.empty()) {
      return tl::unexpected<base::Problems>(problems_.take(request_.path));
    }
    made_.notes_.push_back(fmt::format("{} conversations, {} client turns",
                                       made_.conversations_.size(), made_.samples_.size()));
    return std::move(made_);
  }

 private:
  struct Read {
    Row row;
    std::size_t place = 0;
    std::uint32_t turn = 0;
    std::size_t in_file = 0;  // of its conversation
  };

  bool note_column(std::string_view name) {
    if (is_message_column(name)) {
      columns_.emplace(name);
    }
    return is_message_column(name);
  }

  void complain(std::size_t place, std::string column, std::string value, std::string remedy) {
    problems_.add({place_text(request_.path, format_, place), std::move(column), std::move(value),
                   std::move(remedy)});
  }

  bool take(JsonValue&& row, std::size_t line) {
    ++place_;
    const std::size_t place = line != 0 ? line : place_;
    std::vector<JsonValue::Member> cells;
    for (auto& member : row.members()) {
      if (note_column(member.first)) {
        cells.push_back(std::move(member));
      }
    }
    JsonValue kept = JsonValue::of_object(std::move(cells));
    const JsonValue* const type = cell_or_null(kept, "_type");
    if (type != nullptr && type->is_string() && type->as_string() == "dataset_metadata") {
      return true;
    }
    std::vector<ColumnFault> faults;
    if (format_ == FileFormat::kCsv) {
      faults = read_csv_cells(kept);
    }
    if (faults.empty()) {
      faults = check_message_row(kept);
    }
    for (const ColumnFault& fault : faults) {
      const JsonValue* const cell = kept.find(fault.column);
      complain(place, fault.column, cell == nullptr ? "" : cell->to_json(), fault.remedy);
    }
    bytes_ += weight(kept);
    if (bytes_ > kDatasetBytesMax || ++rows_ > kDatasetRowsMax) {
      complain(place, "", "",
               "the messages need more than 4 GiB of memory (or are above 50 million); take fewer "
               "with samples=N");
      return false;
    }
    sort_in(std::move(kept), place, line, faults.empty());
    return !request_.samples || rows_ < *request_.samples;
  }

  // To the conversation that is being read, or to a new one.
  void sort_in(JsonValue&& cells, std::size_t place, std::size_t line, bool good) {
    const std::string id = conversation_id_of(cells);
    if (id.empty()) {
      return;
    }
    if (id != id_) {
      end_conversation();
      id_ = id;
      began_at_ = place;
      if (!seen_.insert(id).second) {
        complain(place, "conversation_id", id,
                 "the rows of a conversation are not consecutive; put them together");
        reopened_ = true;
      }
    }
    Read read;
    read.turn = turn_of(cells);
    read.place = place;
    read.in_file = reads_.size();
    read.row = {std::move(cells), is_text(format_) ? static_cast<std::uint32_t>(line) : 0};
    all_good_ = all_good_ && good;
    reads_.push_back(std::move(read));
  }

  void end_conversation() {
    std::vector<Read> reads = std::exchange(reads_, {});
    const bool good = std::exchange(all_good_, true);
    const bool split = std::exchange(reopened_, false);
    if (reads.empty() || split) {
      return;  // the numbers of a split conversation cannot be right
    }
    std::stable_sort(reads.begin(), reads.end(),
                     [](const Read& a, const Read& b) { return a.turn < b.turn; });
    check_numbers(reads);
    check_roles(reads);
    if (good && problems_.empty()) {
      keep(std::move(reads));
    }
  }

  void check_numbers(const std::vector<Read>& reads) {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (reads[i].turn == 0) {
        return;  // said already
      }
      if (reads[i].turn != i + 1) {
        std::vector<std::uint32_t> turns;
        for (std::size_t j = 0; j < std::min<std::size_t>(reads.size(), 8); ++j) {
          turns.push_back(reads[j].turn);
        }
        complain(reads[i].place, "turn", fmt::format("{}", reads[i].turn),
                 fmt::format("the turns of conversation {} must be consecutive starting at 1; it "
                             "has {}{}",
                             id_, fmt::join(turns, ", "), reads.size() > 8 ? " …" : ""));
        return;
      }
    }
  }

  void check_roles(const std::vector<Read>& reads) {
    Role before = Role::kNone;
    bool called = false;  // the row before asked for tools
    std::size_t client_turns = 0;
    for (const Read& read : reads) {
      const Role role = role_of(read.row.cells);
      const std::string fault = fault_after(before, called, role);
      if (role != Role::kNone && !fault.empty()) {
        complain(read.place, "role", read.row.cells.find("role")->as_string(), fault);
      }
      before = role;
      called = role == Role::kAssistant && has_tool_calls(read.row.cells);
      client_turns += role == Role::kUser || role == Role::kTool ? 1U : 0U;
    }
    if (client_turns > kClientTurnsMax) {
      complain(
          began_at_, "conversation_id", id_,
          fmt::format("has {} turns of the client, more than {}", client_turns, kClientTurnsMax));
    }
  }

  static std::string fault_after(Role before, bool called, Role role) {
    switch (before) {
      case Role::kNone:
        return role == Role::kUser ? "" : "a conversation begins with a user row";
      case Role::kUser:
        return role == Role::kAssistant ? "" : "after a user row comes an assistant row";
      case Role::kTool:
        return role == Role::kTool ? "after a tool row comes an assistant or a user row; give all "
                                     "results of a turn in one row"
                                   : "";
      case Role::kAssistant:
        break;
    }
    if (role == Role::kAssistant) {
      return "after an assistant row comes a tool or a user row";
    }
    if (role == Role::kTool && !called) {
      return "a tool row needs an assistant row with tool_calls before it";
    }
    if (role == Role::kUser && called) {
      return "after an assistant row with tool_calls comes a tool row";
    }
    return "";
  }

  void keep(std::vector<Read>&& reads) {
    Conversation made;
    made.id = id_;
    const auto number = static_cast<std::uint32_t>(made_.conversations_.size());
    std::vector<std::pair<std::size_t, std::uint32_t>> client;  // place in file, row
    for (std::size_t i = 0; i < reads.size(); ++i) {
      JsonValue& cells = reads[i].row.cells;
      const JsonValue* const system = cell_or_null(cells, "system");
      if (made.system.empty() && system != nullptr && system->is_string()) {
        made.system = system->as_string();
      }
      if (role_of(cells) != Role::kAssistant) {
        client.emplace_back(reads[i].in_file, static_cast<std::uint32_t>(i));
      }
      made.rows.push_back(std::move(reads[i].row));
    }
    std::sort(client.begin(), client.end());
    std::vector<base::SampleIndex> by_row(made.rows.size());
    for (const auto& [in_file, row] : client) {
      by_row[row] = static_cast<base::SampleIndex>(made_.samples_.size());
      ClientTurn turn{number, row, {}};
      const JsonValue* const delay = cell_or_null(made.rows[row].cells, "delay_seconds");
      if (delay != nullptr && delay->as_double() > 0) {
        turn.delay = base::Duration::from_seconds(delay->as_double());
      }
      made_.samples_.push_back(turn);
    }
    for (std::size_t row = 0; row < made.rows.size(); ++row) {
      if (role_of(made.rows[row].cells) != Role::kAssistant) {
        made.samples.push_back(by_row[row]);
      }
    }
    made_.conversations_.push_back(std::move(made));
  }

  // Only when the rows themselves have said nothing: each says that its cell is missing.
  void check_columns() {
    if (problems_.empty() && rows_ > 0 && columns_.count("content") == 0) {
      problems_.add({request_.path, "content", "", "no such column; each message needs it"});
    }
  }

  const DatasetRequest& request_;
  FileFormat format_ = FileFormat::kJsonl;
  ConversationSet made_;
  ProblemList problems_;
  std::unordered_set<std::string> columns_;
  std::unordered_set<std::string> seen_;
  std::size_t place_ = 0;
  std::uint64_t rows_ = 0;
  std::size_t bytes_ = 0;
  // The conversation that is being read.
  std::string id_;
  std::size_t began_at_ = 0;
  std::vector<Read> reads_;
  bool all_good_ = true;
  bool reopened_ = false;
};

tl::expected<ConversationSet, base::Problems> ConversationSet::load(const DatasetRequest& request) {
  return ConversationLoader(request).load();
}

std::string ConversationSet::where(base::SampleIndex sample) const {
  const ClientTurn& turn = samples_[sample];
  const Conversation& conversation = conversations_[turn.conversation];
  const std::uint32_t line = conversation.rows[turn.row].line;
  return line != 0
             ? fmt::format("{}:{}", path_, line)
             : fmt::format("{}: turn {} of conversation {}", path_, turn.row + 1, conversation.id);
}

base::Problems ConversationSet::without_system() const {
  ProblemList problems;
  for (const Conversation& conversation : conversations_) {
    if (conversation.system.empty()) {
      problems.add({where(conversation.samples.front()), "system", "",
                    fmt::format("conversation {} has no system prompt to salt; give it one or "
                                "leave enable_salt off",
                                conversation.id)});
    }
  }
  return problems.take(path_);
}

void ConversationSet::mark_systems(
    const std::function<std::string(const std::string&, const std::string&)>& marked) {
  TUTTI_CHECK(!marked_);
  for (Conversation& conversation : conversations_) {
    conversation.system = marked(conversation.id, conversation.system);
  }
  marked_ = true;
}

Row ConversationSet::row(base::SampleIndex sample, const std::string& mark) const {
  const ClientTurn& turn = samples_[sample];
  const Conversation& conversation = conversations_[turn.conversation];
  std::vector<JsonValue> messages;
  if (!conversation.system.empty()) {
    messages.push_back(
        JsonValue::of_object({{"role", JsonValue::of_string("system")},
                              {"content", JsonValue::of_string(mark + conversation.system)}}));
  }
  for (std::uint32_t i = 0; i <= turn.row; ++i) {
    append_messages(conversation.rows[i].cells, messages);
  }
  Row made;
  made.line = conversation.rows[turn.row].line;
  auto cells = request_fields(conversation.rows[turn.row].cells, conversation.rows[0].cells);
  cells.emplace(cells.begin(), "messages", JsonValue::of_array(std::move(messages)));
  made.cells = JsonValue::of_object(std::move(cells));
  return made;
}

std::string ConversationSet::why_not_sendable(base::SampleIndex sample,
                                              const BodyParams& params) const {
  const ClientTurn& turn = samples_[sample];
  const Conversation& conversation = conversations_[turn.conversation];
  const JsonValue* stream = cell_or_null(conversation.rows[turn.row].cells, "stream");
  stream = stream != nullptr ? stream : cell_or_null(conversation.rows[0].cells, "stream");
  if (stream == nullptr || stream->as_bool() == params.stream) {
    return {};
  }
  return fmt::format(
      "the row says stream: {}, the run says {}; set model_params.streaming to {}, "
      "or remove the column",
      stream->as_bool(), params.stream, stream->as_bool() ? "on" : "off");
}

void ConversationSet::render(base::SampleIndex sample, BodyParams params, RenderedBody& out) const {
  params.write_stream_false = true;
  params.splice_system = marked_;
  render_body(row(sample), params, out);
}

}  // namespace tutti::data
