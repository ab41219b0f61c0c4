#pragma once

// Rows of a prompt file, one by one, whatever its format, gzip or zstd around it or not: JSONL and
// CSV are streamed, JSON is read whole (up to 1 GiB). Internal to this folder. Reading goes on
// after a bad row, so that all bad rows are reported; it ends early when a callback says so.
// Single-threaded.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/json_read.h"

namespace tutti::data {

enum class FileFormat : std::uint8_t { kJsonl, kJson, kCsv, kColumns, kFolder };

struct RowCallbacks {
  // A column of a column file, before its rows; false: its cells are not needed.
  std::function<bool(std::string_view name)> column;
  // `row` is an object. `line` is where it began, 0 in JSON files, the row's number from 1 in
  // column files. False: enough.
  std::function<bool(text::JsonValue&& row, std::size_t line)> row;
  // Place 0: the file as a whole; else the line, or in JSON and column files the row, from 1.
  std::function<void(std::size_t place, std::string reason)> problem;
};

// `paths`: one, or several column files.
void read_rows(const std::vector<std::string>& paths, FileFormat format,
               const RowCallbacks& callbacks);

}  // namespace tutti::data
