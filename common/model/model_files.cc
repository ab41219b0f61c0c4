#include "common/model/model_files.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "common/hub/hub.h"

namespace tutti::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kSpecials = "special_tokens_map.json";
constexpr const char* kTemplate = "chat_template.jinja";

// Empty when there is no such file.
base::Result<std::string> read_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return std::string();
  }
  const auto bytes = fs::file_size(path, error);
  if (!error && bytes > kModelFileBytesMax) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: {} bytes; a tokenizer's file has {} at most", path.string(),
                                  bytes, kModelFileBytesMax));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(error ? 0 : bytes), '\0');
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: cannot be read; check its rights", path.string()));
  }
  return text;
}

}  // namespace

std::uint64_t ModelFiles::fingerprint() const {
  std::uint64_t hash = 0;
  for (const std::string* file :
       {&tokenizer_json, &tokenizer_config, &special_tokens_map, &chat_template}) {
    hash = XXH3_64bits_withSeed(file->data(), file->size(), hash + 1);
  }
  return hash;
}

base::Result<ModelFiles> read_model_files(const std::string& path) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  const fs::path in = folder ? fs::path(path) : fs::path(path).parent_path();
  ModelFiles files;
  files.name = path;
  const std::pair<fs::path, std::string*> wanted[] = {
      {folder ? in / kTokenizer : fs::path(path), &files.tokenizer_json},
      {in / kConfig, &files.tokenizer_config},
      {in / kSpecials, &files.special_tokens_map},
      {in / kTemplate, &files.chat_template}};
  for (const auto& [file, into] : wanted) {
    auto text = read_file(file);
    if (!text) {
      return tl::unexpected(text.error());
    }
    *into = std::move(*text);
  }
  if (files.tokenizer_json.empty()) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: no tokenizer.json there; give a folder of a model that has "
                                  "one, or the file",
                                  path));
  }
  return files;
}

base::Result<std::string> find_model(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) {
    return name;
  }
  if (!hub::is_repository_name(name)) {
    return base::fail(base::ExitCode::kSetup, fmt::format("{}: there is no such path", name));
  }
  const hub::Hub the_hub(hub::hub_terms(hub::process_environment));
  const hub::Repository repository{hub::RepositoryKind::kModel, name};
  const auto snapshot = the_hub.cached(repository);
  if (snapshot && fs::is_regular_file(fs::path(*snapshot) / kTokenizer, error)) {
    return *snapshot;
  }
  return base::fail(base::ExitCode::kSetup,
                    fmt::format("{}: neither a path nor in the hub's cache ({})", name,
                                the_hub.folder(repository)));
}

base::Result<std::string> fetch_model(const std::string& name) {
  auto here = find_model(name);
  if (here || !hub::is_repository_name(name)) {
    return here;
  }
  const hub::Hub the_hub(hub::hub_terms(hub::process_environment));
  const hub::Repository repository{hub::RepositoryKind::kModel, name};
  const auto snapshot = the_hub.look_up(repository);
  if (!snapshot) {
    return tl::unexpected(snapshot.error());
  }
  // The tokenizer comes last: a snapshot that has it has all that counting reads.
  std::vector<std::string> wanted;
  for (const char* const file : {kConfig, kSpecials, kTemplate, kTokenizer}) {
    if (std::find(snapshot->files.begin(), snapshot->files.end(), file) != snapshot->files.end()) {
      wanted.emplace_back(file);
    }
  }
  if (wanted.empty() || wanted.back() != kTokenizer) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("model {} has no {} at the hub; set model_params.tokenizer_name "
                                  "to a model that has one, or to a folder",
                                  name, kTokenizer));
  }
  return the_hub.fetch(repository, *snapshot, wanted);
}

}  // namespace tutti::model
