#include "coordinator/conduct/row_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "common/data/hub_files.h"
#include "common/text/json_read.h"

namespace tutti::conduct {
namespace {

using base::ExitCode;

base::Result<RowChoice> choose_predefined(const spec::DatasetSpec& wanted) {
  auto params = text::read_json(spec::to_json(wanted.generate_params));
  if (!params) {
    return base::fail(ExitCode::kInput, "generate_params cannot be told as JSON");
  }
  RowChoice out;
  if (wanted.name == data::kRandomSet) {
    auto random = data::read_random_prompts(*params);
    if (!random) {
      return tl::unexpected(random.error());
    }
    if (wanted.path || wanted.format || !wanted.parser.empty()) {
      out.notes.emplace_back("data set 'random' is drawn: path, format and parser are not used");
    }
    out.random = std::move(*random);
    return out;
  }
  auto found = data::find_predefined(wanted.name, *params);
  if (!found) {
    return tl::unexpected(found.error());
  }
  out.file.path = found->path;
  out.file.parser = found->parser.value_or(wanted.parser);
  out.pick = found->pick;
  out.notes = std::move(found->notes);
  if (found->parser && !wanted.parser.empty()) {
    out.notes.push_back(
        fmt::format("the preset of '{}' names the columns: parser is not used", wanted.name));
  }
  if (wanted.path || wanted.format) {
    out.notes.push_back(fmt::format(
        "'{}' is the name of a predefined data set: path and format are not used", wanted.name));
  }
  return out;
}

}  // namespace

base::Result<RowChoice> choose_rows(const spec::DatasetSpec& wanted) {
  const std::string path = wanted.path.value_or("");
  const bool at_hub = data::is_hub_path(path);
  const bool there = at_hub || (!path.empty() && std::filesystem::exists(path));
  RowChoice out;
  if (data::is_predefined(wanted.name) && (wanted.name_is_given || !there)) {
    auto predefined = choose_predefined(wanted);
    if (!predefined) {
      return predefined;
    }
    out = std::move(*predefined);
  } else if (!wanted.generate_params.is_null()) {
    return base::fail(ExitCode::kInput,
                      fmt::format("generate_params is for predefined data sets ({}); '{}' is read "
                                  "from its file: remove it",
                                  data::predefined_ids(), wanted.name));
  } else if (path.empty()) {
    return base::fail(ExitCode::kInput,
                      fmt::format("data set '{}' has no path, and is none of the predefined ones: "
                                  "{}",
                                  wanted.name, data::predefined_ids()));
  } else if (!there) {
    return base::fail(ExitCode::kInput, fmt::format("Dataset file not found: {}", path));
  } else {
    if (data::is_predefined(wanted.name)) {
      out.notes.push_back(fmt::format(
          "{} is read, not the predefined data set that its name is; for that one write name: {}",
          path, wanted.name));
    }
    if (at_hub) {
      auto files = data::fetch_hub_files(path);
      if (!files) {
        return tl::unexpected(files.error());
      }
      out.file.files = std::move(*files);
    }
    out.file.path = path;
    out.file.format = wanted.format.value_or("");
    out.file.parser = wanted.parser;
  }
  if (wanted.samples) {
    // Of picked rows the first ones are known when all have been read.
    auto& first = out.pick || out.random ? out.first : out.file.samples;
    first = static_cast<std::uint64_t>(*wanted.samples);
  }
  return out;
}

void pick_rows(const RowChoice& choice, data::Dataset& dataset) {
  dataset.notes.insert(dataset.notes.begin(), choice.notes.begin(), choice.notes.end());
  if (!choice.pick) {
    return;
  }
  auto picked = data::picked_rows(*choice.pick, dataset.rows.size());
  if (choice.first && *choice.first < picked.size()) {
    picked.resize(*choice.first);
  }
  std::vector<data::Row> rows;
  std::vector<text::JsonValue> truths;
  for (const std::uint64_t i : picked) {
    rows.push_back(std::move(dataset.rows[i]));
    if (!dataset.truths.empty()) {
      truths.push_back(std::move(dataset.truths[i]));
    }
  }
  dataset.rows = std::move(rows);
  dataset.truths = std::move(truths);
}

}  // namespace tutti::conduct
