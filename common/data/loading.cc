#include "common/data/loading.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "common/text/utf8.h"

namespace tutti::data {
namespace {

using text::JsonValue;

struct FormatName {
  std::string_view name;
  FileFormat format;
};
constexpr FormatName kFormats[] = {
    {".jsonl", FileFormat::kJsonl},   {".json", FileFormat::kJson},
    {".csv", FileFormat::kCsv},       {".parquet", FileFormat::kColumns},
    {".arrow", FileFormat::kColumns}, {".huggingface", FileFormat::kFolder}};

// The suffix that names the format: that of x.jsonl.gz is .jsonl.
std::string suffix_of(const std::filesystem::path& path) {
  const std::string last = path.extension().string();
  return last == ".gz" || last == ".zst" ? path.stem().extension().string() : last;
}

std::string why_refused(std::string_view format, bool from_suffix) {
  if (from_suffix) {
    return fmt::format(
        "unsupported file extension '{}'; give format=jsonl, json, csv, parquet "
        "or huggingface",
        format);
  }
  return "unknown format; it is one of .jsonl, .json, .csv, .parquet, .huggingface (with or "
         "without the "
         "dot)";
}

}  // namespace

void ProblemList::add(base::Problem problem) {
  constexpr std::size_t kValueShownMax = 60;
  if (++count_ <= kProblemsMax) {
    if (problem.value.size() > kValueShownMax) {
      problem.value = std::string(text::clip_utf8(problem.value, kValueShownMax)) + "…";
    }
    shown_.push_back(std::move(problem));
  }
}

base::Problems ProblemList::take(const std::string& path) {
  if (count_ > kProblemsMax) {
    shown_.push_back({path, "", "", fmt::format("and {} more problems", count_ - kProblemsMax)});
  }
  return std::move(shown_);
}

tl::expected<ChosenFormat, base::Problem> choose_format(const DatasetRequest& request) {
  const bool from_suffix = request.format.empty();
  const std::string& path = request.files.empty() ? request.path : request.files.front();
  std::string name = from_suffix ? suffix_of(path) : request.format;
  std::error_code ignored;
  if (from_suffix && std::filesystem::is_directory(path, ignored)) {
    name = ".huggingface";  // the one directory format there is
  } else if (!name.empty() && name.front() != '.') {
    name.insert(name.begin(), '.');
  }
  for (const FormatName& known : kFormats) {
    if (name == known.name) {
      return ChosenFormat{known.format, name};
    }
  }
  return tl::unexpected<base::Problem>(base::Problem{request.path, "format",
                                                     from_suffix ? std::string() : request.format,
                                                     why_refused(name, from_suffix)});
}

std::string place_text(const std::string& path, FileFormat format, std::size_t place) {
  if (place == 0) {
    return path;
  }
  return is_text(format) ? fmt::format("{}:{}", path, place)
                         : fmt::format("{}: row {}", path, place);
}

std::size_t weight(const JsonValue& value) {
  std::size_t sum = sizeof(JsonValue) + (value.is_string() ? value.as_string().size() : 0);
  for (const JsonValue& item : value.items()) {
    sum += weight(item);
  }
  for (const auto& member : value.members()) {
    sum += sizeof(std::string) + member.first.size() + weight(member.second);
  }
  return sum;
}

}  // namespace tutti::data
