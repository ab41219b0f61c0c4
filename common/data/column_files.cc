#include "common/data/column_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "common/rust/abi.h"
#include "common/rust/rust_bytes.h"
#include "common/text/json_write.h"

namespace tutti::data {
namespace {

using base::ExitCode;
using rust::RustBytes;
using text::JsonValue;

struct CloseRows {
  void operator()(TuttiRows* rows) const { tutti_rows_close(rows); }
};

// Rows of one file; `place` counts over all files. False: the reading is over, for good or bad.
class ColumnFile {
 public:
  ColumnFile(std::string path, const RowCallbacks& callbacks, std::size_t& place)
      : path_(std::move(path)), callbacks_(callbacks), place_(place) {}

  bool read() {
    RustBytes error;
    rows_.reset(tutti_rows_open(path_.data(), path_.size(), error.out()));
    return rows_ ? choose() && read_lines() : fail(error.text());
  }

 private:
  bool fail(std::string_view why) {
    const std::string file = std::filesystem::path(path_).filename().string();
    callbacks_.problem(place_, fmt::format("{}: {}", file, why));
    return false;
  }

  bool choose() {
    RustBytes names;
    RustBytes error;
    if (!tutti_rows_columns(rows_.get(), names.out(), error.out())) {
      return fail(error.text());
    }
    const auto columns = text::read_json(names.text());
    std::vector<JsonValue> wanted;
    for (const JsonValue& column : columns->items()) {
      if (callbacks_.column(column.as_string())) {
        wanted.push_back(column);
      }
    }
    const std::string chosen = JsonValue::of_array(std::move(wanted)).to_json();
    RustBytes why;
    return tutti_rows_choose(rows_.get(), chosen.data(), chosen.size(), why.out()) ||
           fail(why.text());
  }

  bool read_lines() {
    for (;;) {
      RustBytes lines;
      RustBytes error;
      if (!tutti_rows_next(rows_.get(), lines.out(), error.out())) {
        return fail(error.text());
      }
      if (lines.text().empty()) {
        return true;
      }
      if (!take(lines.text())) {
        return false;
      }
    }
  }

  bool take(std::string_view lines) {
    while (!lines.empty()) {
      const std::size_t end = lines.find('\n');
      auto row = text::read_json(lines.substr(0, end));
      ++place_;
      if (!row) {
        return fail(fmt::format("row {} cannot be told as JSON: {}", place_, row.error().reason));
      }
      if (!callbacks_.row(std::move(*row), place_)) {
        return false;
      }
      lines.remove_prefix(end + 1);
    }
    return true;
  }

  std::string path_;
  const RowCallbacks& callbacks_;
  std::size_t& place_;
  std::unique_ptr<TuttiRows, CloseRows> rows_;
};

base::Result<JsonValue> read_object(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto value = text::read_json(whole);
  if (!file || !value || !value->is_object()) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("{} does not hold a JSON object", path.filename().string()));
  }
  return std::move(*value);
}

std::vector<std::string> texts(const JsonValue* list) {
  std::vector<std::string> out;
  for (const JsonValue& item : list != nullptr ? list->items() : std::vector<JsonValue>()) {
    if (item.is_string()) {
      out.push_back(item.as_string());
    }
  }
  return out;
}

// The folder that holds the rows.
base::Result<std::filesystem::path> split_folder(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "dataset_dict.json")) {
    return folder;
  }
  const auto dict = read_object(folder / "dataset_dict.json");
  if (!dict) {
    return tl::unexpected(dict.error());
  }
  const std::vector<std::string> splits = texts(dict->find("splits"));
  if (std::find(splits.begin(), splits.end(), "train") == splits.end()) {
    return base::fail(ExitCode::kSetup,
                      fmt::format("has no split 'train'; of its splits ({}) give the folder of one "
                                  "as path: path/SPLIT",
                                  fmt::join(splits, ", ")));
  }
  return folder / "train";
}

}  // namespace

void read_column_files(const std::vector<std::string>& paths, const RowCallbacks& callbacks) {
  std::size_t place = 0;
  for (const std::string& path : paths) {
    if (!ColumnFile(path, callbacks, place).read()) {
      return;
    }
  }
}

base::Result<std::vector<std::string>> arrow_files(const std::string& folder) {
  const auto split = split_folder(folder);
  if (!split) {
    return tl::unexpected(split.error());
  }
  if (!std::filesystem::exists(*split / "state.json")) {
    return base::fail(ExitCode::kSetup,
                      "not a folder that Hugging Face's save_to_disk wrote: it has neither "
                      "dataset_dict.json nor state.json");
  }
  const auto state = read_object(*split / "state.json");
  if (!state) {
    return tl::unexpected(state.error());
  }
  const JsonValue* const files = state->find("_data_files");
  std::vector<std::string> out;
  for (const JsonValue& file : files != nullptr ? files->items() : std::vector<JsonValue>()) {
    const JsonValue* const name = file.find("filename");
    if (name == nullptr || !name->is_string() || name->as_string().find('/') != std::string::npos) {
      return base::fail(ExitCode::kSetup, "state.json names a data file that is not in its folder");
    }
    out.push_back((*split / name->as_string()).string());
  }
  if (out.empty()) {
    return base::fail(ExitCode::kSetup, "state.json names no data files");
  }
  return out;
}

}  // namespace tutti::data
