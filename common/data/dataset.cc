#include "common/data/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <unordered_set>

#include "common/data/columns.h"
#include "common/data/loading.h"

namespace tutti::data {
namespace {

using text::JsonValue;

class Loader {
 public:
  explicit Loader(const DatasetRequest& request) : request_(request) {}

  tl::expected<Dataset, base::Problems> load() {
    auto chosen = choose_format(request_);
    if (!chosen) {
      return tl::unexpected<base::Problems>(base::Problems{chosen.error()});
    }
    if (request_.samples && *request_.samples == 0) {
      return tl::unexpected<base::Problems>(
          base::Problems{{request_.path, "samples", "0", "must be at least 1"}});
    }
    format_ = chosen->format;
    made_.path = request_.path;
    made_.format = chosen->name;
    const RowCallbacks callbacks{
        [this](std::string_view column) {
          return note_column(column, 0) && (may_matter(column, request_.parser, request_.api) ||
                                            column == request_.truth_column);
        },
        [this](JsonValue&& row, std::size_t line) { return take_row(std::move(row), line); },
        [this](std::size_t place, std::string reason) {
          problems_.add({where(place), "", "", std::move(reason)});
        }};
    read_rows(request_.files.empty() ? std::vector{request_.path} : request_.files, format_,
              callbacks);
    if (made_.rows.empty() && problems_.empty()) {
      problems_.add({request_.path, "", "", "the file has no rows"});
    }
    if (!made_.rows.empty()) {
      name_columns();
    }
    if (!problems_.empty()) {
      return tl::unexpected<base::Problems>(problems_.take(request_.path));
    }
    if (request_.samples && made_.rows.size() < *request_.samples) {
      made_.notes.push_back(fmt::format("samples={} asked for, the file has {} rows: all are used",
                                        *request_.samples, made_.rows.size()));
    }
    return std::move(made_);
  }

 private:
  std::string where(std::size_t place) const { return place_text(request_.path, format_, place); }

  // False: there are too many.
  bool note_column(std::string_view name, std::size_t line) {
    if (columns_.size() > kColumnsMax || !seen_.emplace(name).second) {
      return columns_.size() <= kColumnsMax;
    }
    columns_.emplace_back(name);
    if (columns_.size() > kColumnsMax) {
      problems_.add({where(line), "", "", "more than 4096 different columns"});
      return false;
    }
    return true;
  }

  bool take_row(JsonValue&& row, std::size_t line) {
    std::vector<JsonValue::Member> cells;
    if (request_.truth_column) {
      const JsonValue* const truth = row.find(*request_.truth_column);
      made_.truths.push_back(truth == nullptr ? JsonValue() : *truth);
      bytes_ += weight(made_.truths.back());
    }
    for (auto& member : row.members()) {
      if (!note_column(member.first, line)) {
        return false;
      }
      if (may_matter(member.first, request_.parser, request_.api)) {
        cells.push_back(std::move(member));
      }
    }
    Row kept{JsonValue::of_object(std::move(cells)),
             is_text(format_) ? static_cast<std::uint32_t>(line) : 0};
    bytes_ += weight(kept.cells);
    if (bytes_ > kDatasetBytesMax || made_.rows.size() == kDatasetRowsMax) {
      problems_.add({where(line), "", "",
                     "the prompts need more than 4 GiB of memory (or are above 50 million); take "
                     "fewer with samples=N"});
      return false;
    }
    made_.rows.push_back(std::move(kept));
    if (request_.progress && made_.rows.size() % request_.progress_rows == 0) {
      request_.progress(made_.rows.size());
    }
    made_.ended_by_samples = request_.samples && made_.rows.size() >= *request_.samples;
    return !made_.ended_by_samples;
  }

  void name_columns() {
    ColumnPlan plan = plan_columns(columns_, request_.parser, request_.api, request_.path);
    for (base::Problem& problem : plan.problems) {
      problems_.add(std::move(problem));
    }
    if (!plan.problems.empty()) {
      return;
    }
    made_.notes = std::move(plan.notes);
    if (request_.truth_column && seen_.count(*request_.truth_column) == 0) {
      problems_.add(
          {request_.path, "accuracy_config.ground_truth", *request_.truth_column,
           fmt::format("no such column; the file has: {}",
                       fmt::join(columns_.begin(),
                                 columns_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                        columns_.size(), kColumnsShownMax)),
                                 ", "))});
    }
    for (std::size_t i = 0; i < made_.rows.size(); ++i) {
      finish_row(i, plan);
    }
  }

  // Projects row `i` onto the plan and checks each cell.
  void finish_row(std::size_t i, const ColumnPlan& plan) {
    Row& row = made_.rows[i];
    std::vector<JsonValue::Member> cells;
    bool has_input = false;
    for (auto& [source, cell] : row.cells.members()) {
      for (const auto& kept : plan.kept) {
        if (kept.first != source) {
          continue;
        }
        const std::string& name = kept.second;
        const std::string wrong = check_cell(name, cell, format_ == FileFormat::kCsv, request_.api);
        if (!wrong.empty()) {
          problems_.add({made_.where(i), source, cell.to_json(), wrong});
        }
        has_input =
            has_input ||
            (!cell.is_null() && (name == "prompt" || name == "messages" || name == "input_tokens"));
        cells.emplace_back(name, std::move(cell));
        break;
      }
    }
    if (!has_input) {
      problems_.add({made_.where(i), "prompt", "", "this row has no prompt"});
    }
    row.cells = JsonValue::of_object(std::move(cells));
  }

  static constexpr std::size_t kColumnsMax = 4096;
  static constexpr std::size_t kColumnsShownMax = 30;

  const DatasetRequest& request_;
  FileFormat format_ = FileFormat::kJsonl;
  Dataset made_;
  ProblemList problems_;
  std::vector<std::string> columns_;
  std::unordered_set<std::string> seen_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::string Dataset::where(std::size_t row) const {
  const std::uint32_t line = row < rows.size() ? rows[row].line : 0;
  return line != 0 ? fmt::format("{}:{}", path, line) : fmt::format("{}: row {}", path, row + 1);
}

tl::expected<Dataset, base::Problems> load_dataset(const DatasetRequest& request) {
  return Loader(request).load();
}

}  // namespace tutti::data
