#include "coordinator/conduct/punkt_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace tutti::conduct {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

base::Result<Punkt> read_folder(const fs::path& folder) {
  accuracy::PunktTexts texts;
  for (const auto& [name, text] : {std::pair("abbrev_types.txt", &texts.abbreviations),
                                   std::pair("sent_starters.txt", &texts.starters),
                                   std::pair("collocations.tab", &texts.collocations),
                                   std::pair("ortho_context.tab", &texts.ortho_contexts)}) {
    auto read = text_of(folder / name);
    if (!read) {
      return base::fail(
          base::ExitCode::kSetup,
          fmt::format("{} cannot be read; get NLTK's data again: python3 -m nltk.downloader "
                      "punkt_tab",
                      (folder / name).string()));
    }
    *text = std::move(*read);
  }
  auto model = accuracy::read_punkt(texts);
  if (!model) {
    return base::fail(model.error().code,
                      fmt::format("{}/{}", folder.string(), model.error().message));
  }
  return std::make_shared<const accuracy::PunktModel>(std::move(*model));
}

}  // namespace

std::vector<std::string> nltk_folders(const hub::Environment& environment) {
  std::vector<std::string> out;
  const std::string home = environment("HOME");
  const std::string named = environment("NLTK_DATA");
  for (std::size_t from = 0; from < named.size();) {
    const std::size_t end = std::min(named.find(':', from), named.size());
    std::string folder = named.substr(from, end - from);
    if (folder == "~" || folder.rfind("~/", 0) == 0) {
      folder.replace(0, 1, home);
    }
    if (!folder.empty()) {
      out.push_back(std::move(folder));
    }
    from = end + 1;
  }
  if (!home.empty()) {
    out.push_back(home + "/nltk_data");
  }
  std::vector<std::string> prefixes;
  if (std::string prefix = environment("VIRTUAL_ENV"); !prefix.empty()) {
    prefixes.push_back(std::move(prefix));
  }
  prefixes.insert(prefixes.end(), {"/usr", "/usr/local"});
  for (const std::string& prefix : prefixes) {
    for (const char* const place : {"/nltk_data", "/share/nltk_data", "/lib/nltk_data"}) {
      out.push_back(prefix + place);
    }
  }
  return out;
}

base::Result<Punkt> load_punkt(const hub::Environment& environment) {
  const std::vector<std::string> folders = nltk_folders(environment);
  for (const std::string& each : folders) {
    const fs::path folder = fs::path(each) / "tokenizers/punkt_tab/english";
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) {
      return read_folder(folder);
    }
  }
  return base::fail(base::ExitCode::kSetup,
                    fmt::format("no tokenizers/punkt_tab/english in {}; get it by python3 -m "
                                "nltk.downloader punkt_tab, or name its folder in NLTK_DATA",
                                fmt::join(folders, ", ")));
}

}  // namespace tutti::conduct
