#include "common/data/hub_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "common/hub/hub.h"

namespace tutti::data {
namespace {

constexpr std::string_view kStart = "hf://";
constexpr std::string_view kDatasets = "hf://datasets/";
constexpr std::size_t kFilesShownMax = 12;

using Names = std::vector<std::string>;

bool is_parquet(const std::string& file) { return file.ends_with(".parquet"); }

bool is_text(std::string_view file) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (file.ends_with(packed)) {
      file.remove_suffix(packed.size());
    }
  }
  // A .json is as often a description as a data set: that must be named.
  return file.ends_with(".jsonl") || file.ends_with(".csv");
}

template <class Keep>
Names those(const Names& files, const Keep& keep) {
  Names out;
  std::copy_if(files.begin(), files.end(), std::back_inserter(out), keep);
  return out;
}

// "data/train-00000-of-00002.parquet" and "train/0.parquet" have the word, "trained.parquet" not.
bool has_word(const std::string& file, std::string_view word) {
  for (auto at = file.find(word); at != std::string::npos; at = file.find(word, at + 1)) {
    const auto is_letter = [&](std::size_t i) {
      return i < file.size() && std::isalnum(static_cast<unsigned char>(file[i])) != 0;
    };
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) {
      return true;
    }
  }
  return false;
}

std::string folder_of(const std::string& file) {
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

base::Result<Names> refuse(const std::string& why, const Names& files) {
  const std::size_t shown = std::min(files.size(), kFilesShownMax);
  const Names first(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::string more =
      shown < files.size() ? fmt::format(" and {} more", files.size() - shown) : std::string();
  return base::fail(base::ExitCode::kInput,
                    fmt::format("{}; it has: {}{}", why, fmt::join(first, ", "), more));
}

}  // namespace

bool is_hub_path(const std::string& path) { return path.rfind(kStart, 0) == 0; }

base::Result<HubPath> read_hub_path(const std::string& path) {
  const auto wrong = base::fail(
      base::ExitCode::kInput,
      fmt::format("{}: must be hf://datasets/ORG/NAME, @REVISION and /FILE or /FOLDER after it",
                  path));
  if (path.rfind(kDatasets, 0) != 0) {
    return wrong;
  }
  const std::string rest = path.substr(kDatasets.size());
  const auto slash = rest.find('/');
  if (slash == std::string::npos) {
    return wrong;
  }
  const auto end = std::min(rest.find('/', slash + 1), rest.size());
  HubPath out;
  out.repository = rest.substr(0, end);
  if (const auto at = out.repository.find('@'); at != std::string::npos) {
    out.revision = out.repository.substr(at + 1);
    out.repository.resize(at);
    // As in the hub's own paths: a branch's slashes are written %2F there.
    for (auto i = out.revision.find("%2F"); i != std::string::npos; i = out.revision.find("%2F")) {
      out.revision.replace(i, 3, "/");
    }
  }
  out.inside = end < rest.size() ? rest.substr(end + 1) : std::string();
  while (!out.inside.empty() && out.inside.back() == '/') {
    out.inside.pop_back();
  }
  if (!hub::is_repository_name(out.repository) || out.revision.empty()) {
    return wrong;
  }
  return out;
}

base::Result<Names> choose_hub_files(const Names& files, const std::string& inside) {
  if (std::find(files.begin(), files.end(), inside) != files.end()) {
    return Names{inside};
  }
  const std::string start = inside.empty() ? inside : inside + "/";
  const Names within =
      those(files, [&](const std::string& file) { return file.rfind(start, 0) == 0; });
  if (within.empty()) {
    return refuse(fmt::format("no file or folder '{}' there", inside), files);
  }
  Names found = those(within, is_parquet);
  const bool parquet = !found.empty();
  if (!parquet) {
    found = those(within, is_text);
  }
  const auto of_split = [&](std::string_view split) {
    return those(
        found, [&](const std::string& file) { return has_word(file.substr(start.size()), split); });
  };
  bool splits = false;
  for (const char* const other : {"test", "validation", "valid", "val", "dev", "eval"}) {
    splits = splits || !of_split(other).empty();
  }
  if (found.size() > 1 && (splits || !of_split("train").empty())) {
    if (Names train = of_split("train"); !train.empty()) {
      found = std::move(train);
    } else {
      return refuse("several splits and no 'train': name a file", found);
    }
  }
  if (found.empty()) {
    return refuse("no Parquet, JSONL or CSV file there: name a file", within);
  }
  const bool one_folder = std::all_of(found.begin(), found.end(), [&](const std::string& file) {
    return folder_of(file) == folder_of(found.front());
  });
  if (found.size() > 1 && (!parquet || !one_folder)) {
    return refuse(parquet ? "Parquet files in several folders: name one of them"
                          : "several text files: name one of them",
                  found);
  }
  return found;
}

base::Result<Names> fetch_hub_files(const std::string& path) {
  const auto where = read_hub_path(path);
  if (!where) {
    return tl::unexpected(where.error());
  }
  const hub::Hub the_hub(hub::hub_terms(hub::process_environment));
  const hub::Repository repository{hub::RepositoryKind::kDataset, where->repository,
                                   where->revision};
  const auto snapshot = the_hub.look_up(repository);
  if (!snapshot) {
    return tl::unexpected(snapshot.error());
  }
  auto chosen = choose_hub_files(snapshot->files, where->inside);
  if (!chosen) {
    return base::fail(chosen.error().code, fmt::format("{}: {}", path, chosen.error().message));
  }
  const auto folder = the_hub.fetch(repository, *snapshot, *chosen);
  if (!folder) {
    return tl::unexpected(folder.error());
  }
  for (std::string& file : *chosen) {
    file.insert(0, *folder + "/");
  }
  return chosen;
}

}  // namespace tutti::data
