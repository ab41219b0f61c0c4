#include "common/model/model_files.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace tutti::model {
namespace {

namespace fs = std::filesystem;

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

fs::path hub_cache() {
  const auto set = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string cache = set("HF_HUB_CACHE"); !cache.empty()) {
    return cache;
  }
  if (const std::string home = set("HF_HOME"); !home.empty()) {
    return fs::path(home) / "hub";
  }
  if (const std::string cache = set("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::path(cache) / "huggingface" / "hub";
  }
  return fs::path(set("HOME")) / ".cache" / "huggingface" / "hub";
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
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
      {folder ? in / "tokenizer.json" : fs::path(path), &files.tokenizer_json},
      {in / "tokenizer_config.json", &files.tokenizer_config},
      {in / "special_tokens_map.json", &files.special_tokens_map},
      {in / "chat_template.jinja", &files.chat_template}};
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
  // "org/name" or "name": anything else is no hub's name, so it was meant as a path.
  const bool hub_name = !name.empty() && name.front() != '.' && name.front() != '/' &&
                        std::count(name.begin(), name.end(), '/') <= 1;
  if (!hub_name) {
    return base::fail(base::ExitCode::kSetup, fmt::format("{}: there is no such path", name));
  }
  std::string folder = "models--" + name;
  if (const auto slash = folder.find('/'); slash != std::string::npos) {
    folder.replace(slash, 1, "--");
  }
  const fs::path repository = hub_cache() / folder;
  const std::string revision = first_line(repository / "refs" / "main");
  const fs::path snapshot = repository / "snapshots" / revision;
  if (!revision.empty() && fs::is_regular_file(snapshot / "tokenizer.json", error)) {
    return snapshot.string();
  }
  return base::fail(
      base::ExitCode::kSetup,
      fmt::format("{}: neither a path nor in the hub's cache ({}); fetch it there, or set "
                  "model_params.tokenizer_name to a folder with its tokenizer.json",
                  name, repository.string()));
}

}  // namespace tutti::model
