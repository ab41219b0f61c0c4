#pragma once

// Dataset: the rows of a prompt file, with only the columns a request needs, JSON types kept as
// they are in the file. Reads JSONL, JSON (list of records, or column-oriented) and CSV, each
// packed with gzip or zstd or not, Parquet, and folders of Hugging Face's save_to_disk. Loading
// finds all problems, each with file:line; memory is bounded by kDatasetBytesMax. Immutable after
// load.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/base/vocabulary.h"
#include "common/text/json_read.h"

namespace tutti::data {

inline constexpr std::size_t kDatasetBytesMax = std::size_t{4} << 30;  // kept cells, not file bytes
inline constexpr std::size_t kDatasetRowsMax = 50'000'000;
inline constexpr std::size_t kProblemsMax = 20;  // reported one by one; the rest as a count

inline constexpr std::size_t kProgressRows = 250'000;

struct DatasetRequest {
  std::string path;
  // What `path` stands for when it is no file: files of one format, several only when they are
  // Parquet (fetch_hub_files). Empty: `path` itself.
  std::vector<std::string> files;
  std::string format;  // "jsonl" or ".jsonl" …; empty: the path's last suffix
  // target ← source renames, in the order written; of two with one source the later wins.
  std::vector<std::pair<std::string, std::string>> parser;
  // Only the first N rows are read, checked and used; a shorter file gives what it has.
  std::optional<std::uint64_t> samples;
  base::ApiType api = base::ApiType::kOpenAiChat;
  // Column of right answers, by its name in the file (before `parser`); read into Dataset::truths.
  std::optional<std::string> truth_column;
  // Called after each so many rows, with how many there are by then; large files take a while.
  std::function<void(std::size_t rows)> progress;
  std::size_t progress_rows = kProgressRows;
};

struct Row {
  text::JsonValue cells;   // object; a JSON null is kept (it counts for saltability), never sent
  std::uint32_t line = 0;  // where the row began in the file; 0: it has no lines (JSON, columns)
};

struct Dataset {
  std::string path;
  std::string format;  // ".jsonl", ".json", ".csv", ".parquet", ".arrow" or ".huggingface"
  std::vector<Row> rows;
  std::vector<text::JsonValue> truths;  // as in the file, one for each row; only when asked for
  std::vector<std::string> notes;       // choices worth a log line: "prompt ← text_input"
  bool ended_by_samples = false;        // the file may have more rows than were taken

  // "file:12" (JSONL, CSV) or "file: row 11" (all others).
  std::string where(std::size_t row) const;
};

// Names of problems' fields are column names. Never empty on error.
tl::expected<Dataset, base::Problems> load_dataset(const DatasetRequest& request);

enum class PromptKind : std::uint8_t { kNone, kText, kMessages, kTokenIds };

struct Prompt {
  PromptKind kind = PromptKind::kNone;
  std::string text;  // the prompt, or the array of messages or token ids as compact JSON
};

// What event files say of a row's prompt: its token ids, else `messages` if it has them, else the
// text prompt; a prompt of content parts is given as the messages array it is sent as.
Prompt prompt_of(const Row& row);

}  // namespace tutti::data
