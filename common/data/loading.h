#pragma once

// What the readers of prompt files share: which format a path has, how places in it are named, the
// list of what is wrong, and what a kept cell costs. Internal to this folder. Single-threaded.

#include <cstddef>
#include <string>

#include "common/base/result.h"
#include "common/data/dataset.h"
#include "common/data/row_source.h"

namespace tutti::data {

// Shows the first kProblemsMax, counts all.
class ProblemList {
 public:
  void add(base::Problem problem);
  bool empty() const { return count_ == 0; }
  base::Problems take(const std::string& path);

 private:
  base::Problems shown_;
  std::size_t count_ = 0;
};

struct ChosenFormat {
  FileFormat format = FileFormat::kJsonl;
  std::string name;
};

tl::expected<ChosenFormat, base::Problem> choose_format(const DatasetRequest& request);

// Its rows have lines.
inline bool is_text(FileFormat format) {
  return format == FileFormat::kJsonl || format == FileFormat::kCsv;
}

// "file:12", or "file: row 12" where rows have no lines; place 0 is the file.
std::string place_text(const std::string& path, FileFormat format, std::size_t place);

// Rough bytes a value holds in memory; what kDatasetBytesMax counts.
std::size_t weight(const text::JsonValue& value);

}  // namespace tutti::data
