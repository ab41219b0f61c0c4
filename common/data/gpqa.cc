#include "common/data/gpqa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "common/base/id.h"
#include "common/base/random.h"
#include "common/data/hub_files.h"
#include "common/data/loading.h"
#include "common/data/predefined.h"
#include "common/data/row_source.h"
#include "common/rust/abi.h"
#include "common/rust/rust_bytes.h"
#include "common/text/json_write.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

using base::ExitCode;
using text::JsonValue;

constexpr std::string_view kDomain = "High-level domain";
constexpr std::string_view kSubdomain = "Subdomain";
constexpr std::string_view kQuestion = "Question";
constexpr std::array<std::string_view, 4> kAnswers = {"Correct Answer", "Incorrect Answer 1",
                                                      "Incorrect Answer 2", "Incorrect Answer 3"};

bool is_wanted(std::string_view column) {
  return column == kQuestion || column == kDomain || column == kSubdomain ||
         std::find(kAnswers.begin(), kAnswers.end(), column) != kAnswers.end();
}

tl::unexpected<base::Error> refuse(std::string text) {
  return base::fail(ExitCode::kInput, std::move(text));
}

// The text of a cell; empty where there is none.
std::string text_of(const JsonValue& row, std::string_view column) {
  const JsonValue* const cell = row.find(column);
  return cell == nullptr || cell->is_null() ? std::string()
         : cell->is_string()                ? cell->as_string()
                                            : cell->to_json();
}

// The names of columns that a question cannot do without and this row has nothing in.
std::vector<std::string_view> missing_of(const JsonValue& row) {
  std::vector<std::string_view> out;
  for (const std::string_view column :
       {kQuestion, kAnswers[0], kAnswers[1], kAnswers[2], kAnswers[3]}) {
    if (text_of(row, column).empty()) {
      out.push_back(column);
    }
  }
  return out;
}

struct SourceFiles {
  std::vector<std::string> paths;
  std::string name;  // for messages
};

base::Result<SourceFiles> find_source(const GpqaWanted& wanted) {
  const std::string file = fmt::format("gpqa_{}", wanted.variant);
  if (is_hub_path(wanted.source)) {
    const auto where = read_hub_path(wanted.source);
    if (!where) {
      return tl::unexpected(where.error());
    }
    std::string name = wanted.source;
    if (where->inside.empty()) {
      name += (name.back() == '/' ? "" : "/") + file + ".csv";
    }
    auto fetched = fetch_hub_files(name);
    return fetched ? base::Result<SourceFiles>(SourceFiles{std::move(*fetched), name})
                   : tl::unexpected(fetched.error());
  }
  std::error_code ignored;
  if (fs::is_regular_file(wanted.source, ignored)) {
    return SourceFiles{{wanted.source}, wanted.source};
  }
  for (const char* const suffix : {".csv", ".parquet"}) {
    const std::string path = (fs::path(wanted.source) / (file + suffix)).string();
    if (fs::is_regular_file(path, ignored)) {
      return SourceFiles{{path}, path};
    }
  }
  return refuse(fmt::format(
      "generate_params.source: '{0}' is no file, and no folder with {1}.csv or {1}.parquet in it",
      wanted.source, file));
}

base::Result<std::vector<GpqaRow>> read_source(const SourceFiles& source) {
  DatasetRequest request;
  request.path = source.name;
  request.files = source.paths;
  const auto format = choose_format(request);
  if (!format) {
    return refuse(fmt::format("{}: {}", source.name, format.error().remedy));
  }
  std::vector<GpqaRow> out;
  std::string wrong;
  const auto tell = [&](std::size_t place, const std::string& why) {
    if (wrong.empty()) {
      wrong = fmt::format("{}: {}", place_text(source.name, format->format, place), why);
    }
  };
  RowCallbacks callbacks;
  callbacks.column = is_wanted;
  callbacks.problem = tell;
  callbacks.row = [&](JsonValue&& row, std::size_t place) {
    if (const auto missing = missing_of(row); !missing.empty()) {
      tell(place, fmt::format("nothing in column {}", fmt::join(missing, ", ")));
      return false;
    }
    GpqaRow& made = out.emplace_back();
    made.question = text_of(row, kQuestion);
    std::transform(kAnswers.begin(), kAnswers.end(), made.answers.begin(),
                   [&row](std::string_view column) { return text_of(row, column); });
    made.domain = text_of(row, kDomain);
    made.subdomain = text_of(row, kSubdomain);
    return true;
  };
  read_rows(source.paths, format->format, callbacks);
  if (!wrong.empty()) {
    return refuse(std::move(wrong));
  }
  if (out.empty()) {
    return refuse(source.name + ": holds no questions");
  }
  return out;
}

// [["question", [...]], ["choice1", [...]], ...], in the order of the reference's columns.
std::string columns_json(const std::vector<GpqaQuestion>& questions) {
  std::vector<JsonValue> columns;
  const auto add = [&](std::string name, const auto& cell) {
    std::vector<JsonValue> cells;
    for (const GpqaQuestion& each : questions) {
      const std::string& text = cell(each);
      cells.push_back(text.empty() ? JsonValue() : JsonValue::of_string(text));
    }
    columns.push_back(JsonValue::of_array(
        {JsonValue::of_string(std::move(name)), JsonValue::of_array(std::move(cells))}));
  };
  using Text = const std::string&;
  add("question", [](const GpqaQuestion& each) -> Text { return each.question; });
  for (std::size_t k = 0; k < 4; ++k) {
    add(fmt::format("choice{}", k + 1),
        [k](const GpqaQuestion& each) -> Text { return each.choices[k]; });
  }
  add("ground_truth", [](const GpqaQuestion& each) -> Text { return each.ground_truth; });
  add("domain", [](const GpqaQuestion& each) -> Text { return each.domain; });
  add("subdomain", [](const GpqaQuestion& each) -> Text { return each.subdomain; });
  return JsonValue::of_array(std::move(columns)).to_json();
}

base::Status write_whole(const std::string& path, const std::string& columns) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const std::string draft = base::draft_path(path);
  rust::RustBytes why;
  if (!tutti_table_write(draft.data(), draft.size(), columns.data(), columns.size(), why.out())) {
    static_cast<void>(std::remove(draft.c_str()));
    return refuse(fmt::format("{} cannot be written: {}", path, why.text()));
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    const int cause = errno;
    static_cast<void>(std::remove(draft.c_str()));
    return refuse(fmt::format("{} cannot be written: {}", path, std::strerror(cause)));
  }
  return {};
}

}  // namespace

std::vector<GpqaQuestion> draw_gpqa(const std::vector<GpqaRow>& rows, const GpqaOrder& order) {
  const std::vector<std::uint64_t> chosen =
      picked_rows({order.seed, order.count.value_or(rows.size())}, rows.size());
  // A generator of its own, whatever the rows took.
  base::Mt19937 random(order.seed);
  std::vector<GpqaQuestion> out;
  for (const std::uint64_t i : chosen) {
    const GpqaRow& row = rows[i];
    GpqaQuestion& made = out.emplace_back();
    made.question = row.question;
    const std::vector<std::uint64_t> places = sampled(random, row.answers.size(), 4);
    std::transform(places.begin(), places.end(), made.choices.begin(),
                   [&row](std::uint64_t place) { return row.answers[place]; });
    const auto right = std::find(made.choices.begin(), made.choices.end(), row.answers[0]);
    made.ground_truth = fmt::format("choice{}", right - made.choices.begin() + 1);
    made.domain = row.domain;
    made.subdomain = row.subdomain;
  }
  return out;
}

base::Result<std::string> make_gpqa(const GpqaWanted& wanted, const std::string& path) {
  const auto source = find_source(wanted);
  if (!source) {
    return tl::unexpected(source.error());
  }
  const auto rows = read_source(*source);
  if (!rows) {
    return tl::unexpected(rows.error());
  }
  if (auto written = write_whole(path, columns_json(draw_gpqa(*rows, wanted.order))); !written) {
    return tl::unexpected(written.error());
  }
  return source->name;
}

}  // namespace tutti::data
