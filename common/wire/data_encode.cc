#include <optional>
#include <type_traits>

#include <msgpack.hpp>

#include "common/base/check.h"
#include "common/wire/codec.h"
#include "common/wire/data_codec.h"
#include "common/wire/data_columns.h"

namespace tutti::wire {
namespace {

struct Sink {
  std::string& out;
  void write(const char* bytes, std::size_t count) {
    if (count == 1) {
      out.push_back(*bytes);  // most cells
    } else {
      out.append(bytes, count);
    }
  }
};

using Cell = std::optional<std::int64_t>;

constexpr std::size_t kUsualRecordBytes = 64;  // without texts; a guess to allocate once

std::size_t text_bytes(const Record& record) {
  std::size_t bytes = 0;
  for (std::size_t i = kTextColumnFirst; i < kRecordColumnNames.size(); ++i) {
    bytes += text_of(record, static_cast<RecordColumn>(i)).size();
  }
  return bytes;
}

class ColumnWriter {
 public:
  ColumnWriter(std::string& out, std::size_t rows) : sink_{out}, packer_(sink_), rows_(rows) {}

  void head(DataKind kind, std::uint64_t number, std::size_t columns) {
    packer_.pack_array(static_cast<std::uint32_t>(kHeadFields + columns));
    packer_.pack_uint32(kDataVersion);
    packer_.pack_uint8(static_cast<std::uint8_t>(kind));
    packer_.pack_int64(static_cast<std::int64_t>(number));
    packer_.pack_uint32(static_cast<std::uint32_t>(rows_));
  }

  // value(i): the cell of row i, an integer or a Cell. Called once per row, in order.
  template <class F>
  void column(F value) {
    if (rows_ == 1) {
      cell(value(std::size_t{0}));
      return;
    }
    auto& cells = scratch<decltype(value(std::size_t{0}))>();
    cells.clear();
    bool alike = true;
    for (std::size_t i = 0; i < rows_; ++i) {
      cells.push_back(value(i));
      alike = alike && cells.back() == cells.front();
    }
    if (alike) {
      rows_ == 0 ? packer_.pack_nil(), void() : cell(cells.front());
      return;
    }
    array(rows_);
    for (const auto& each : cells) {
      cell(each);
    }
  }

  void array(std::size_t size) { packer_.pack_array(static_cast<std::uint32_t>(size)); }
  void nil() { packer_.pack_nil(); }
  void cell(std::int64_t value) { packer_.pack_int64(value); }

  void cell(const Cell& value) {
    if (value.has_value()) {
      packer_.pack_int64(*value);
    } else {
      packer_.pack_nil();
    }
  }

  void text(const std::string& value) {
    if (value.empty()) {
      packer_.pack_nil();
      return;
    }
    packer_.pack_bin(static_cast<std::uint32_t>(value.size()));
    packer_.pack_bin_body(value.data(), static_cast<std::uint32_t>(value.size()));
  }

 private:
  template <class T>
  auto& scratch() {
    if constexpr (std::is_same_v<T, Cell>) {
      return gaps_;
    } else {
      return full_;
    }
  }

  Sink sink_;
  msgpack::packer<Sink> packer_;
  std::size_t rows_;
  std::vector<std::int64_t> full_;  // the column at hand, when every row has a value
  std::vector<Cell> gaps_;          // … and when some may have none
};

using Rows = std::vector<Record>;

template <class T>
void plain(ColumnWriter& writer, const Rows& rows, T Record::*field) {
  writer.column([&](std::size_t i) { return static_cast<std::int64_t>(rows[i].*field); });
}

void stamps(ColumnWriter& writer, const Rows& rows) {
  writer.column([&](std::size_t i) {
    return step_between(i == 0 ? base::Instant{} : rows[i - 1].issued_at, rows[i].issued_at);
  });
  writer.column([&](std::size_t i) {
    const base::Instant due = rows[i].due_at;
    return due.is_set() ? Cell(step_between(rows[i].issued_at, due)) : Cell();
  });
  for (std::size_t place = 1; place < kLife.size(); ++place) {
    writer.column([&](std::size_t i) {
      const base::Instant stamp = rows[i].*kLife[place];
      return stamp.is_set() ? Cell(step_between(stamp_before(rows[i], place), stamp)) : Cell();
    });
  }
}

void chunks(ColumnWriter& writer, const Rows& rows) {
  std::size_t total = 0;
  writer.column([&](std::size_t i) {
    total += rows[i].chunk_at.size();
    return static_cast<std::int64_t>(rows[i].chunk_at.size());
  });
  if (total == 0) {
    writer.nil();
    return;
  }
  writer.array(total);
  for (const Record& record : rows) {
    base::Instant previous = stamp_before(record, kLifeOfChunks);
    for (const base::Instant chunk : record.chunk_at) {
      writer.cell(step_between(previous, chunk));
      previous = chunk;
    }
  }
}

// One array: of each phase its number and how many cells follow, then of each cell the step from
// the one before and its count.
void gaps(ColumnWriter& writer, const std::vector<PhaseGaps>& phases) {
  if (phases.empty()) {
    writer.nil();
    return;
  }
  std::size_t size = 0;
  for (const PhaseGaps& part : phases) {
    size += 2 + 2 * part.cells.size();
  }
  writer.array(size);
  for (const PhaseGaps& part : phases) {
    writer.cell(std::int64_t{part.phase});
    writer.cell(static_cast<std::int64_t>(part.cells.size()));
    std::int64_t previous = 0;
    for (const auto& [cell, count] : part.cells) {
      writer.cell(cell - previous);
      writer.cell(std::int64_t{count});
      previous = cell;
    }
  }
}

// One array: of each count its phase, the step of its seq from the one before, and what it says.
void tokens(ColumnWriter& writer, const std::vector<TokenCount>& counts) {
  if (counts.empty()) {
    writer.nil();
    return;
  }
  writer.array(counts.size() * kTokenCountNumbers);
  base::Seq previous = 0;
  for (const TokenCount& count : counts) {
    writer.cell(std::int64_t{count.phase});
    writer.cell(step_between(previous, count.seq));
    writer.cell(std::int64_t{count.output});
    writer.cell(std::int64_t{count.after_first});
    writer.cell(std::int64_t{count.without_template});
    previous = count.seq;
  }
}

void texts(ColumnWriter& writer, const Rows& rows, RecordColumn column) {
  bool none = true;
  for (const Record& record : rows) {
    none = none && text_of(record, column).empty();
  }
  if (none) {
    writer.nil();
    return;
  }
  writer.array(rows.size());
  for (const Record& record : rows) {
    writer.text(text_of(record, column));
  }
}

// Each at the first command of its trajectory.
void conversations(ColumnWriter& writer, const Lease& lease) {
  if (lease.trajectories.empty()) {
    writer.nil();
    return;
  }
  writer.array(lease.commands.size());
  std::size_t rows = 0;
  for (const Trajectory& trajectory : lease.trajectories) {
    TUTTI_CHECK(trajectory.turns > 0 && !trajectory.conversation.empty());
    writer.text(trajectory.conversation);
    for (std::uint32_t turn = 1; turn < trajectory.turns; ++turn) {
      writer.nil();
    }
    rows += trajectory.turns;
  }
  TUTTI_CHECK(rows == lease.commands.size());
}

void integers(ColumnWriter& writer, const Rows& rows) {
  plain(writer, rows, &Record::dns_us);
  plain(writer, rows, &Record::connect_us);
  plain(writer, rows, &Record::tls_us);
  plain(writer, rows, &Record::content_events);
  plain(writer, rows, &Record::malformed_events);
  plain(writer, rows, &Record::bytes_up);
  plain(writer, rows, &Record::bytes_down);
  plain(writer, rows, &Record::prompt_tokens);
  plain(writer, rows, &Record::completion_tokens);
  plain(writer, rows, &Record::reasoning_tokens);
}

}  // namespace

std::string encode_lease(const Lease& lease) {
  const auto& rows = lease.commands;
  TUTTI_CHECK(rows.size() <= kLeaseCommandsMax);
  std::string out;
  out.reserve(64 + rows.size() * 16);
  ColumnWriter writer(out, rows.size());
  writer.head(DataKind::kLease, lease.phase, kLeaseColumnNames.size());
  writer.column([&](std::size_t i) {
    return step_between(i == 0 ? base::Seq{0} : rows[i - 1].seq, rows[i].seq);
  });
  writer.column([&](std::size_t i) { return static_cast<std::int64_t>(rows[i].sample); });
  writer.column([&](std::size_t i) {
    const std::int64_t previous = i == 0 ? 0 : rows[i - 1].due_offset.ns;
    return step_between(base::Instant{previous}, base::Instant{rows[i].due_offset.ns});
  });
  writer.column([&](std::size_t i) {
    return rows[i].salted ? Cell(static_cast<std::int64_t>(rows[i].salt)) : Cell();
  });
  conversations(writer, lease);
  return out;
}

std::string encode_records(const RecordBatch& batch) {
  const Rows& rows = batch.records;
  TUTTI_CHECK(rows.size() <= kBatchRecordsMax && batch.tokens.size() <= kBatchRecordsMax);
  std::string out;
  std::size_t expected = 256 + batch.tokens.size() * 12;
  for (const Record& record : rows) {
    expected += kUsualRecordBytes + text_bytes(record) + record.chunk_at.size() * 4;
  }
  out.reserve(expected);
  ColumnWriter writer(out, rows.size());
  writer.head(DataKind::kRecords, batch.number, kRecordColumnNames.size());
  writer.column([&](std::size_t i) {
    return step_between(i == 0 ? base::Seq{0} : rows[i - 1].seq, rows[i].seq);
  });
  plain(writer, rows, &Record::sample);
  plain(writer, rows, &Record::phase);
  plain(writer, rows, &Record::worker);
  plain(writer, rows, &Record::frontend);
  plain(writer, rows, &Record::outcome);
  plain(writer, rows, &Record::failure);
  plain(writer, rows, &Record::finish_reason);
  plain(writer, rows, &Record::http_status);
  writer.column([&](std::size_t i) { return flags_of(rows[i]); });
  stamps(writer, rows);
  integers(writer, rows);
  chunks(writer, rows);
  gaps(writer, batch.gaps);
  tokens(writer, batch.tokens);
  for (std::size_t i = kTextColumnFirst; i < kRecordColumnNames.size(); ++i) {
    texts(writer, rows, static_cast<RecordColumn>(i));
  }
  return out;
}

std::size_t record_bytes_max(const Record& record) {
  constexpr std::size_t kCellMax = 9;      // a type byte and 64 bits
  constexpr std::size_t kTextHeadMax = 5;  // a type byte and a 32-bit length
  constexpr std::size_t kTexts = kRecordColumnNames.size() - kTextColumnFirst;
  // Its gaps merged with others' take no more than alone: a phase's head and its cells.
  const std::size_t gaps = record.gaps.empty() ? 0 : 2 + 2 * record.gaps.size();
  return (kTextColumnFirst + record.chunk_at.size() + gaps) * kCellMax + kTexts * kTextHeadMax +
         text_bytes(record);
}

}  // namespace tutti::wire
