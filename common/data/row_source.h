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

#include "common/text/json_read.h"

namespace tutti::data {

enum class FileFormat : std::uint8_t { kJsonl, kJson, kCsv };

struct RowCallbacks {
  // `row` is an object. `line` is where it began, 0 in JSON files. False: enough.
  std::function<bool(text::JsonValue&& row, std::size_t line)> row;
  // Place 0: the file as a whole; else the line, or in JSON files the row counted from 1.
  std::function<void(std::size_t place, std::string reason)> problem;
};

void read_rows(const std::string& path, FileFormat format, const RowCallbacks& callbacks);

}  // namespace tutti::data
