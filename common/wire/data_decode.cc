#include <fmt/format.h>

#include <limits>
#include <utility>

#include <msgpack.hpp>

#include "common/wire/codec.h"
#include "common/wire/data_codec.h"
#include "common/wire/data_columns.h"
#include "common/wire/ranges.h"

namespace tutti::wire {
namespace {

struct Cell {
  std::int64_t value = 0;
  bool nil = false;
};

// Reads the root array element by element: the head fields, then each column into cells_ or texts_,
// which are applied to the rows when the column ends. Nothing is sized by a number of the input
// before that number was checked against a limit or against the bytes that are there.
class DataVisitor : public msgpack::null_visitor {
 public:
  explicit DataVisitor(std::size_t input_bytes) : input_bytes_(input_bytes) {}

  base::Result<Message> take(bool parsed) {
    if (fault_.empty() && (!parsed || depth_ != 0 || element_ != elements_)) {
      fault_ = "not whole";
    }
    if (!fault_.empty()) {
      return base::fail(base::ExitCode::kExecution, "data message refused: " + fault_);
    }
    if (kind_ == DataKind::kLease) {
      return Message{std::move(lease_)};
    }
    return Message{std::move(batch_)};
  }

  bool visit_nil() { return expects_ == Expects::kText ? text({}) : cell({0, true}); }
  bool visit_positive_integer(std::uint64_t v) {
    if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse(fmt::format("{} is out of range", v));
    }
    return cell({static_cast<std::int64_t>(v), false});
  }
  bool visit_negative_integer(std::int64_t v) { return cell({v, false}); }
  bool visit_bin(const char* bytes, std::uint32_t size) { return text({bytes, size}); }
  bool visit_boolean(bool) { return refuse("a boolean"); }
  bool visit_float32(float) { return refuse("a float"); }
  bool visit_float64(double) { return refuse("a float"); }
  bool visit_str(const char*, std::uint32_t) { return refuse("a string that is not bin"); }
  bool visit_ext(const char*, std::uint32_t) { return refuse("an extension"); }
  bool start_map(std::uint32_t) { return refuse("a map"); }
  void parse_error(std::size_t, std::size_t at) { refuse(fmt::format("broken at byte {}", at)); }
  void insufficient_bytes(std::size_t, std::size_t at) {
    refuse(fmt::format("ends too early, at byte {}", at));
  }

  bool start_array(std::uint32_t size) {
    ++depth_;
    if (depth_ == 1) {
      elements_ = size;
      expects_ = Expects::kCell;
      return true;
    }
    if (depth_ > 2 || element_ < kHeadFields) {
      return refuse("an array where none belongs");
    }
    single_ = false;
    if (in_steps()) {
      expects_ = Expects::kStep;
    }
    if (in_gaps()) {
      return size <= kGapNumbersMax || refuse(fmt::format("{} numbers of gaps", size));
    }
    if (in_tokens()) {
      const bool whole = size % kTokenCountNumbers == 0;
      return (whole && size <= kTokenCountNumbers * kBatchRecordsMax) ||
             refuse(fmt::format("{} numbers of counts", size));
    }
    const std::size_t wanted = in_steps() ? steps_ : rows_;
    return size == wanted || refuse(fmt::format("{} cells for {}", size, wanted));
  }
  bool end_array() {
    --depth_;
    if (depth_ == 0) {
      expects_ = Expects::kNothing;
    }
    return true;
  }
  bool end_array_item() {
    if (depth_ != 1) {
      return true;
    }
    const bool good = element_ < kHeadFields ? head() : column();
    ++element_;
    expects_ = in_texts() ? Expects::kText : Expects::kCell;
    cells_.clear();
    texts_.clear();
    single_ = true;
    return good;
  }

 private:
  bool refuse(std::string reason);
  bool cell(Cell cell);
  bool text(std::string_view text);
  bool head();
  bool size_rows(std::int64_t rows);
  bool column();
  bool lease_column(LeaseColumn column);
  bool conversations();
  bool record_column(RecordColumn column);
  bool issued_stamps();
  bool due_stamps();
  bool later_stamps(std::size_t place);
  bool chunk_counts();
  bool chunk_step(Cell cell);
  bool gaps();
  bool tokens();
  bool text_column(RecordColumn column);
  template <class T>
  bool plain(T Record::*field);
  template <class F>
  bool each(F set);
  template <class T>
  static bool store(T& field, Cell cell);

  std::size_t place() const { return element_ - kHeadFields; }
  bool in_records() const { return kind_ == DataKind::kRecords && element_ >= kHeadFields; }
  bool in_conversations() const {
    return kind_ == DataKind::kLease && element_ >= kHeadFields &&
           place() == static_cast<std::size_t>(LeaseColumn::kConversation);
  }
  bool in_texts() const {
    return in_conversations() || (in_records() && place() >= kTextColumnFirst);
  }
  bool in_steps() const {
    return in_records() && place() == static_cast<std::size_t>(RecordColumn::kChunkSteps);
  }
  bool in_gaps() const {
    return in_records() && place() == static_cast<std::size_t>(RecordColumn::kGaps);
  }
  bool in_tokens() const {
    return in_records() && place() == static_cast<std::size_t>(RecordColumn::kTokens);
  }

  std::size_t input_bytes_;
  std::string fault_;
  std::size_t depth_ = 0;
  std::size_t elements_ = 0;  // of the root
  std::size_t element_ = 0;   // the one being read
  DataKind kind_ = DataKind::kRecords;
  std::size_t rows_ = 0;
  bool single_ = true;  // the column is one value for all rows
  // What the next value is, decided once a column.
  enum class Expects : std::uint8_t { kNothing, kCell, kText, kStep };
  Expects expects_ = Expects::kNothing;
  std::vector<Cell> cells_;
  std::vector<std::string_view> texts_;
  RecordBatch batch_;
  Lease lease_;
  // chunk_steps go straight to their record: they are many.
  std::size_t steps_ = 0;
  std::size_t step_row_ = 0;
  std::size_t step_place_ = 0;
};

bool DataVisitor::refuse(std::string reason) {
  if (fault_.empty()) {
    const char* where = "head";
    if (depth_ > 0 && element_ >= kHeadFields) {
      where = kind_ == DataKind::kLease ? kLeaseColumnNames[place()] : kRecordColumnNames[place()];
    }
    fault_ = fmt::format("{}: {}", where, reason);
  }
  return false;
}

bool DataVisitor::cell(Cell cell) {
  if (expects_ == Expects::kCell) {
    cells_.push_back(cell);
    return true;
  }
  return expects_ == Expects::kStep ? chunk_step(cell) : refuse("an integer where none belongs");
}

bool DataVisitor::text(std::string_view text) {
  if (expects_ != Expects::kText) {
    return refuse("a text where none belongs");
  }
  texts_.push_back(text);
  return true;
}

bool DataVisitor::head() {
  const Cell value = cells_.front();
  if (value.nil) {
    return refuse("empty");
  }
  switch (element_) {
    case 0:
      return value.value == kDataVersion ||
             refuse(fmt::format("data version {}, this side knows {}", value.value, kDataVersion));
    case 1: {
      const bool lease = value.value == static_cast<std::int64_t>(DataKind::kLease);
      if (!lease && value.value != static_cast<std::int64_t>(DataKind::kRecords)) {
        return refuse(fmt::format("unknown kind {}", value.value));
      }
      kind_ = lease ? DataKind::kLease : DataKind::kRecords;
      const std::size_t wanted =
          kHeadFields + (lease ? kLeaseColumnNames.size() : kRecordColumnNames.size());
      return elements_ == wanted || refuse(fmt::format("{} fields, not {}", elements_, wanted));
    }
    case 2:
      batch_.number = static_cast<std::uint64_t>(value.value);
      return kind_ == DataKind::kRecords || store(lease_.phase, value) || refuse("no such phase");
    default:
      return size_rows(value.value);
  }
}

bool DataVisitor::size_rows(std::int64_t rows) {
  const std::size_t most = kind_ == DataKind::kLease ? kLeaseCommandsMax : kBatchRecordsMax;
  if (rows < 0 || static_cast<std::uint64_t>(rows) > most) {
    return refuse(fmt::format("{} rows, more than {}", rows, most));
  }
  rows_ = static_cast<std::size_t>(rows);
  cells_.reserve(rows_);
  if (kind_ == DataKind::kLease) {
    lease_.commands.resize(rows_);
  } else {
    batch_.records.resize(rows_);
  }
  return true;
}

bool DataVisitor::column() {
  if (in_gaps()) {
    return gaps();  // not by rows
  }
  if (in_tokens()) {
    return tokens();  // nor these
  }
  if (rows_ == 0) {
    return true;
  }
  return kind_ == DataKind::kLease ? lease_column(static_cast<LeaseColumn>(place()))
                                   : record_column(static_cast<RecordColumn>(place()));
}

template <class T>
bool DataVisitor::store(T& field, Cell cell) {
  if constexpr (std::is_enum_v<T>) {
    if (cell.nil || cell.value < 0 || cell.value > static_cast<std::int64_t>(kLastOf<T>)) {
      return false;
    }
  } else if (cell.nil || !std::in_range<T>(cell.value)) {
    return false;
  }
  field = static_cast<T>(cell.value);
  return true;
}

// set(row, cell) → whether the cell is possible there.
template <class F>
bool DataVisitor::each(F set) {
  const std::size_t stride = single_ ? 0 : 1;
  for (std::size_t i = 0; i < rows_; ++i) {
    const Cell cell = cells_[i * stride];
    if (!set(i, cell)) {
      return refuse(cell.nil ? fmt::format("row {} is empty", i)
                             : fmt::format("row {}: {} is out of range", i, cell.value));
    }
  }
  return true;
}

template <class T>
bool DataVisitor::plain(T Record::*field) {
  return each([&](std::size_t i, Cell cell) { return store(batch_.records[i].*field, cell); });
}

bool DataVisitor::lease_column(LeaseColumn column) {
  auto& rows = lease_.commands;
  std::uint64_t sum = 0;
  switch (column) {
    case LeaseColumn::kSeq:
      return each([&](std::size_t i, Cell cell) {
        rows[i].seq = sum += static_cast<std::uint64_t>(cell.value);
        return !cell.nil;
      });
    case LeaseColumn::kSample:
      return each([&](std::size_t i, Cell cell) { return store(rows[i].sample, cell); });
    case LeaseColumn::kDueOffset:
      return each([&](std::size_t i, Cell cell) {
        sum += static_cast<std::uint64_t>(cell.value);
        rows[i].due_offset.ns = static_cast<std::int64_t>(sum);
        return !cell.nil;
      });
    case LeaseColumn::kSalt:
      return each([&](std::size_t i, Cell cell) {
        rows[i].salted = !cell.nil;
        rows[i].salt = static_cast<std::uint64_t>(cell.value);
        return true;
      });
    case LeaseColumn::kConversation:
      return conversations();
  }
  return false;
}

bool DataVisitor::conversations() {
  if (single_) {
    return texts_.front().empty() || refuse("one text for all rows");
  }
  if (texts_.front().empty()) {
    return refuse("the first command is of no conversation");
  }
  for (const std::string_view text : texts_) {
    if (!text.empty()) {
      lease_.trajectories.push_back({0, std::string(text)});
    }
    ++lease_.trajectories.back().turns;
  }
  return true;
}

bool DataVisitor::issued_stamps() {
  base::Instant previous{};
  return each([&](std::size_t i, Cell cell) {
    previous = batch_.records[i].issued_at = step_from(previous, cell.value);
    return !cell.nil;
  });
}

bool DataVisitor::due_stamps() {
  return each([&](std::size_t i, Cell cell) {
    Record& record = batch_.records[i];
    record.due_at = cell.nil ? base::Instant{} : step_from(record.issued_at, cell.value);
    return true;
  });
}

bool DataVisitor::later_stamps(std::size_t place_in_life) {
  return each([&](std::size_t i, Cell cell) {
    Record& record = batch_.records[i];
    record.*kLife[place_in_life] =
        cell.nil ? base::Instant{} : step_from(stamp_before(record, place_in_life), cell.value);
    return true;
  });
}

bool DataVisitor::chunk_counts() {
  return each([&](std::size_t i, Cell cell) {
    // A step takes a byte at least: more of them than bytes cannot follow.
    if (cell.nil || cell.value < 0 ||
        static_cast<std::uint64_t>(cell.value) > input_bytes_ - steps_) {
      return false;
    }
    steps_ += static_cast<std::size_t>(cell.value);
    batch_.records[i].chunk_at.resize(static_cast<std::size_t>(cell.value));
    return true;
  });
}

bool DataVisitor::chunk_step(Cell cell) {
  while (step_place_ == batch_.records[step_row_].chunk_at.size()) {
    ++step_row_;  // start_array has seen to it that there are no more steps than places
    step_place_ = 0;
  }
  Record& record = batch_.records[step_row_];
  const base::Instant previous =
      step_place_ == 0 ? stamp_before(record, kLifeOfChunks) : record.chunk_at[step_place_ - 1];
  record.chunk_at[step_place_++] = step_from(previous, cell.value);
  return !cell.nil || refuse("an empty step");
}

bool DataVisitor::gaps() {
  if (single_) {
    return cells_.front().nil || refuse("not an array");
  }
  std::size_t at = 0;
  const auto next = [&](auto& field) { return at < cells_.size() && store(field, cells_[at++]); };
  while (at < cells_.size()) {
    PhaseGaps& part = batch_.gaps.emplace_back();
    std::uint32_t size = 0;
    if (!next(part.phase) || !next(size) || size > (cells_.size() - at) / 2) {
      return refuse(fmt::format("no phase with its cells before element {}", at));
    }
    part.cells.resize(size);
    std::uint64_t place = 0;
    for (auto& [cell, count] : part.cells) {
      std::int64_t step = 0;
      if (!next(step)) {
        return refuse(fmt::format("element {} is no step", at - 1));
      }
      place += static_cast<std::uint64_t>(step);
      if (!std::in_range<std::uint16_t>(place) || !next(count)) {
        return refuse(fmt::format("no cell and count before element {}", at));
      }
      cell = static_cast<std::uint16_t>(place);
    }
  }
  return true;
}

bool DataVisitor::tokens() {
  if (single_) {
    return cells_.front().nil || refuse("not an array");
  }
  base::Seq seq = 0;
  batch_.tokens.resize(cells_.size() / kTokenCountNumbers);
  for (std::size_t i = 0; i < batch_.tokens.size(); ++i) {
    const Cell* const at = &cells_[i * kTokenCountNumbers];
    TokenCount& count = batch_.tokens[i];
    std::int64_t step = 0;
    std::uint8_t without = 0;
    if (!store(count.phase, at[0]) || !store(step, at[1]) || !store(count.output, at[2]) ||
        !store(count.after_first, at[3]) || !store(without, at[4]) || without > 1) {
      return refuse(fmt::format("count {} has a number that is out of range", i));
    }
    count.seq = seq += static_cast<std::uint64_t>(step);
    count.without_template = without != 0;
  }
  return true;
}

bool DataVisitor::text_column(RecordColumn column) {
  const std::size_t stride = single_ ? 0 : 1;
  if (single_ && !texts_.front().empty()) {
    return refuse("one text for all rows");  // would multiply the input
  }
  for (std::size_t i = 0; i < rows_; ++i) {
    text_of(batch_.records[i], column).assign(texts_[i * stride]);
  }
  return true;
}

bool DataVisitor::record_column(RecordColumn column) {
  std::uint64_t sum = 0;
  switch (column) {
    case RecordColumn::kSeq:
      return each([&](std::size_t i, Cell cell) {
        batch_.records[i].seq = sum += static_cast<std::uint64_t>(cell.value);
        return !cell.nil;
      });
    case RecordColumn::kSample:
      return plain(&Record::sample);
    case RecordColumn::kPhase:
      return plain(&Record::phase);
    case RecordColumn::kWorker:
      return plain(&Record::worker);
    case RecordColumn::kFrontend:
      return plain(&Record::frontend);
    case RecordColumn::kOutcome:
      return plain(&Record::outcome);
    case RecordColumn::kFailure:
      return plain(&Record::failure);
    case RecordColumn::kFinishReason:
      return plain(&Record::finish_reason);
    case RecordColumn::kHttpStatus:
      return plain(&Record::http_status);
    case RecordColumn::kFlags:
      return each([&](std::size_t i, Cell cell) {
        set_flags(batch_.records[i], cell.value);
        return !cell.nil && cell.value >= 0 && cell.value <= kFlagsMax;
      });
    case RecordColumn::kIssuedAt:
      return issued_stamps();
    case RecordColumn::kDueAt:
      return due_stamps();
    case RecordColumn::kSentAt:
      return later_stamps(1);
    case RecordColumn::kFirstByteAt:
      return later_stamps(2);
    case RecordColumn::kFirstTokenAt:
      return later_stamps(3);
    case RecordColumn::kLastTokenAt:
      return later_stamps(4);
    case RecordColumn::kDoneAt:
      return later_stamps(5);
    case RecordColumn::kDnsUs:
      return plain(&Record::dns_us);
    case RecordColumn::kConnectUs:
      return plain(&Record::connect_us);
    case RecordColumn::kTlsUs:
      return plain(&Record::tls_us);
    case RecordColumn::kContentEvents:
      return plain(&Record::content_events);
    case RecordColumn::kMalformedEvents:
      return plain(&Record::malformed_events);
    case RecordColumn::kBytesUp:
      return plain(&Record::bytes_up);
    case RecordColumn::kBytesDown:
      return plain(&Record::bytes_down);
    case RecordColumn::kPromptTokens:
      return plain(&Record::prompt_tokens);
    case RecordColumn::kCompletionTokens:
      return plain(&Record::completion_tokens);
    case RecordColumn::kReasoningTokens:
      return plain(&Record::reasoning_tokens);
    case RecordColumn::kChunkCounts:
      return chunk_counts();
    case RecordColumn::kChunkSteps:
      return !single_ || (steps_ == 0 && cells_.front().nil) || refuse("not an array");
    case RecordColumn::kGaps:
    case RecordColumn::kTokens:
      return true;  // column() has taken them
    default:
      return text_column(column);
  }
}

}  // namespace

base::Result<Message> decode_data(std::string_view bytes) {
  if (bytes.size() > kPayloadBytesMax) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("data message refused: {} bytes, more than {}", bytes.size(),
                                  kPayloadBytesMax));
  }
  DataVisitor visitor(bytes.size());
  std::size_t end = 0;
  const bool parsed = msgpack::parse(bytes.data(), bytes.size(), end, visitor);
  return visitor.take(parsed && end == bytes.size());
}

}  // namespace tutti::wire
