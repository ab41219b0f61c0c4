#include "common/data/row_source.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/data/column_files.h"
#include "common/data/expander.h"
#include "common/text/csv.h"

namespace tutti::data {
namespace {

using text::JsonValue;

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytesMax = std::size_t{256} << 20;
constexpr std::size_t kJsonFileBytesMax = std::size_t{1} << 30;

// Empty: a file named .gz or .zst is what it says.
std::string why_misnamed(const std::string& path, Packing packing) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  const bool good = (suffix != ".gz" || packing == Packing::kGzip) &&
                    (suffix != ".zst" || packing == Packing::kZstd);
  return good ? std::string() : fmt::format("named {}, but does not start as such a file", suffix);
}

struct CloseFile {
  void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Text of the file, expanded when it is packed, goes to `take` until it says stop. False: an I/O
// error or damage, reported with the line it was found in (`line`; 0: the file as a whole).
bool read_blocks(const std::string& path, const RowCallbacks& callbacks,
                 const std::function<bool(std::string_view)>& take,
                 const std::function<std::size_t()>& line) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    callbacks.problem(0, fmt::format("cannot be opened: {}", std::strerror(errno)));
    return false;
  }
  Expander expander;
  std::vector<char> block(kReadBytes);
  bool more = true;
  while (more) {
    const std::size_t n = std::fread(block.data(), 1, block.size(), file.get());
    if (n == 0) {
      break;
    }
    more = expander.feed(std::string_view(block.data(), n), take);
  }
  if (std::ferror(file.get()) != 0) {
    callbacks.problem(line(), fmt::format("cannot be read: {}", std::strerror(errno)));
    return false;
  }
  more = more && expander.finish(take);
  if (!expander.error().empty()) {
    callbacks.problem(line(), expander.error());
    return false;
  }
  if (const std::string wrong = why_misnamed(path, expander.packing()); more && !wrong.empty()) {
    callbacks.problem(0, wrong);
    return false;
  }
  return true;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == std::string_view::npos;
}

class LineRows {
 public:
  explicit LineRows(const RowCallbacks& callbacks) : callbacks_(callbacks) {}

  bool feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (piece.size() > kLineBytesMax - line_.size()) {
        callbacks_.problem(number_, fmt::format("a line above {} bytes", kLineBytesMax));
        return false;
      }
      if (end == std::string_view::npos) {
        line_.append(piece);
        return true;
      }
      bool go_on = true;
      if (line_.empty()) {
        go_on = take(piece);
      } else {
        line_.append(piece);
        go_on = take(line_);
        line_.clear();
      }
      ++number_;
      if (!go_on) {
        return false;
      }
      bytes.remove_prefix(end + 1);
    }
    return true;
  }

  std::size_t line() const { return number_; }

  void finish() {
    if (!line_.empty()) {
      take(line_);
    }
  }

 private:
  bool take(std::string_view line) {
    if (is_blank(line)) {
      return true;
    }
    auto value = text::read_json(line);
    if (!value) {
      callbacks_.problem(number_, fmt::format("not valid JSON at column {}: {}",
                                              value.error().column, value.error().reason));
      return true;
    }
    if (!value->is_object()) {
      callbacks_.problem(
          number_, fmt::format("a line must be one JSON object, this is {}", value->kind_name()));
      return true;
    }
    return callbacks_.row(std::move(*value), number_);
  }

  const RowCallbacks& callbacks_;
  std::string line_;
  std::size_t number_ = 1;
};

void read_jsonl(const std::string& path, const RowCallbacks& callbacks) {
  LineRows rows(callbacks);
  bool ended = false;
  const bool read = read_blocks(
      path, callbacks,
      [&](std::string_view bytes) {
        ended = !rows.feed(bytes);
        return !ended;
      },
      [&rows] { return rows.line(); });
  if (read && !ended) {
    rows.finish();
  }
}

class CsvRows {
 public:
  explicit CsvRows(const RowCallbacks& callbacks) : callbacks_(callbacks) {}

  bool take(std::vector<std::string>& fields, std::size_t line) {
    if (names_.empty()) {
      names_ = fields;
      return true;
    }
    if (fields.size() != names_.size()) {
      callbacks_.problem(
          line, fmt::format("{} fields, but the header names {}", fields.size(), names_.size()));
      return true;
    }
    std::vector<JsonValue::Member> cells;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!fields[i].empty()) {  // an empty cell is an absent one
        cells.emplace_back(names_[i], JsonValue::of_string(std::move(fields[i])));
      }
    }
    return callbacks_.row(JsonValue::of_object(std::move(cells)), line);
  }

 private:
  const RowCallbacks& callbacks_;
  std::vector<std::string> names_;
};

void read_csv(const std::string& path, const RowCallbacks& callbacks) {
  CsvRows rows(callbacks);
  text::CsvReader reader;
  const auto sink = [&rows](std::vector<std::string>& fields, std::size_t line) {
    return rows.take(fields, line);
  };
  bool more = true;
  const bool read = read_blocks(
      path, callbacks,
      [&](std::string_view bytes) {
        more = reader.feed(bytes, sink);
        return more;
      },
      [&reader] { return reader.line(); });
  if (read && more) {
    static_cast<void>(reader.finish(sink));
  }
  if (reader.error().line != 0) {
    callbacks.problem(reader.error().line, reader.error().reason);
  }
}

// {column: [values]} or {column: {row id: value}}; row ids in the order they first appear.
void read_column_oriented(const JsonValue& table, const RowCallbacks& callbacks) {
  std::vector<std::vector<JsonValue::Member>> rows;
  std::unordered_map<std::string, std::size_t> places;
  std::size_t array_rows = 0;
  for (const auto& [name, column] : table.members()) {
    if (column.is_array()) {
      if (array_rows != 0 && array_rows != column.items().size()) {
        callbacks.problem(0, fmt::format("column '{}' has {} values, another has {}", name,
                                         column.items().size(), array_rows));
        return;
      }
      array_rows = column.items().size();
      rows.resize(std::max(rows.size(), array_rows));
      for (std::size_t i = 0; i < array_rows; ++i) {
        rows[i].emplace_back(name, column.items()[i]);
      }
    } else if (column.is_object()) {
      for (const auto& [id, value] : column.members()) {
        const std::size_t place = places.emplace(id, places.size()).first->second;
        rows.resize(std::max(rows.size(), place + 1));
        rows[place].emplace_back(name, value);
      }
    } else {
      callbacks.problem(0, fmt::format("neither a list of records nor column-oriented: '{}' is {}",
                                       name, column.kind_name()));
      return;
    }
  }
  if (array_rows != 0 && !places.empty()) {
    callbacks.problem(0, "columns given as lists and as objects in one file");
    return;
  }
  for (auto& row : rows) {
    if (!callbacks.row(JsonValue::of_object(std::move(row)), 0)) {
      return;
    }
  }
}

void read_json_file(const std::string& path, const RowCallbacks& callbacks) {
  std::string whole;
  const bool read = read_blocks(
      path, callbacks,
      [&whole](std::string_view bytes) {
        whole.append(bytes);
        return whole.size() <= kJsonFileBytesMax;
      },
      [] { return std::size_t{0}; });
  if (!read) {
    return;
  }
  if (whole.size() > kJsonFileBytesMax) {
    callbacks.problem(0, "a JSON file above 1 GiB; JSONL has no such limit");
    return;
  }
  const text::JsonLimits limits{kJsonFileBytesMax, 64};
  const auto value =
      text::read_json_items(whole, limits, [&callbacks](std::size_t index, JsonValue&& item) {
        if (item.is_object()) {
          return callbacks.row(std::move(item), 0);
        }
        callbacks.problem(index + 1,
                          fmt::format("a row must be an object, this is {}", item.kind_name()));
        return true;
      });
  if (!value) {
    callbacks.problem(0, "not valid JSON: " + value.error().to_text());
  } else if (value->is_object()) {
    read_column_oriented(*value, callbacks);
  } else if (!value->is_array()) {
    callbacks.problem(0,
                      fmt::format("must hold a list of records, this is {}", value->kind_name()));
  }
}

}  // namespace

void read_rows(const std::vector<std::string>& paths, FileFormat format,
               const RowCallbacks& callbacks) {
  if (paths.size() > 1 && format != FileFormat::kColumns) {
    callbacks.problem(0, "several files, of which only Parquet ones can be read as one: name one");
    return;
  }
  const std::string& path = paths.front();
  switch (format) {
    case FileFormat::kJsonl:
      return read_jsonl(path, callbacks);
    case FileFormat::kCsv:
      return read_csv(path, callbacks);
    case FileFormat::kJson:
      return read_json_file(path, callbacks);
    case FileFormat::kColumns:
      return read_column_files(paths, callbacks);
    case FileFormat::kFolder:
      if (const auto files = arrow_files(path)) {
        read_column_files(*files, callbacks);
      } else {
        callbacks.problem(0, files.error().message);
      }
      return;
  }
}

}  // namespace tutti::data
