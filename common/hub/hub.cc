#include "common/hub/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/hub/download.h"

namespace tutti::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListBytesMax = std::size_t{64} << 20;

base::Error error_of(const std::string& what) { return {base::ExitCode::kSetup, what}; }

bool is_word(const std::string& text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.front() != '.' && text.find("..") == std::string::npos &&
         std::all_of(text.begin(), text.end(), good);
}

// Words with slashes between them.
bool is_plain_path(const std::string& text) {
  std::size_t from = 0;
  for (std::size_t slash = 0; slash != std::string::npos; from = slash + 1) {
    slash = text.find('/', from);
    if (!is_word(text.substr(from, slash - from))) {
      return false;
    }
  }
  return true;
}

bool is_commit(const std::string& text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Stays in its folder, on any file system; may hold any other character.
bool is_safe_file(const std::string& file) {
  const fs::path path(file);
  const auto bad = [](const fs::path& part) { return part.empty() || part == "." || part == ".."; };
  return !file.empty() && path.is_relative() && file.find('\0') == std::string::npos &&
         file.find('\n') == std::string::npos && std::none_of(path.begin(), path.end(), bad);
}

std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::strchr("-._~/", c) != nullptr;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// What tutti notes of a commit beside the library's own files: its list of files, one a line.
fs::path list_path(const fs::path& folder, const std::string& commit) {
  return folder / "tutti" / (commit + ".files");
}

std::optional<Snapshot> noted(const fs::path& folder, const std::string& commit) {
  std::ifstream file(list_path(folder, commit));
  if (!file) {
    return std::nullopt;
  }
  Snapshot out{commit, {}};
  for (std::string line; std::getline(file, line);) {
    if (is_safe_file(line)) {
      out.files.push_back(line);
    }
  }
  return out;
}

class DraftFile {
 public:
  explicit DraftFile(const fs::path& path) : path_(path) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    draft_ = base::draft_path(path.string());
    file_ = std::fopen(draft_.c_str(), "wbxe");
    cause_ = errno;
  }
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  ~DraftFile() {
    if (file_ != nullptr) {
      static_cast<void>(std::fclose(file_));
    }
    if (!draft_.empty()) {
      static_cast<void>(std::remove(draft_.c_str()));
    }
  }

  std::FILE* file() const { return file_; }

  // Under its name, whole; a file that is there is replaced.
  bool publish() {
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    const bool named = closed && std::rename(draft_.c_str(), path_.c_str()) == 0;
    cause_ = errno;
    if (named) {
      draft_.clear();
    }
    return named;
  }

  base::Error why() const {
    return error_of(fmt::format(
        "{}: cannot be written: {}; HF_HUB_CACHE or HF_HOME name a folder for the hub's files",
        path_.string(), std::strerror(cause_)));
  }

 private:
  fs::path path_;
  std::string draft_;
  std::FILE* file_ = nullptr;
  int cause_ = 0;
};

base::Status write_whole(const fs::path& path, const std::string& text) {
  DraftFile draft(path);
  if (draft.file() == nullptr ||
      std::fwrite(text.data(), 1, text.size(), draft.file()) != text.size() || !draft.publish()) {
    return tl::unexpected(draft.why());
  }
  return {};
}

std::string words_of(const Repository& repository) {
  const char* const kind = repository.kind == RepositoryKind::kModel ? "model" : "data set";
  return repository.revision == "main"
             ? fmt::format("{} {}", kind, repository.name)
             : fmt::format("{} {} at {}", kind, repository.name, repository.revision);
}

// Why an answer of the hub is no good, and what to do.
base::Error why_not(const std::string& what, const HubTerms& terms, const Downloaded& answer) {
  const std::string start = fmt::format("{}: the hub at {} ", what, terms.endpoint);
  if (answer.interrupted) {
    return {base::ExitCode::kInterrupted, what + ": interrupted while it was fetched"};
  }
  if (answer.status == 401) {
    return error_of(start + (terms.token.empty()
                                 ? "knows no such thing, or shows it to some accounts only (401); "
                                   "check the name, or set HF_TOKEN to the token of one"
                                 : "knows no such thing, or does not take the token (401); check "
                                   "the name and HF_TOKEN"));
  }
  if (answer.status == 403) {
    return error_of(start +
                    "refuses it (403): ask for access on its page there, with the account whose "
                    "token is in HF_TOKEN");
  }
  if (answer.status == 404) {
    return error_of(start + "has no such thing (404); check name, revision and file");
  }
  if (answer.status == 429) {
    return error_of(start + "has had too many requests (429); wait, or set HF_TOKEN");
  }
  const std::string cause =
      answer.failure.empty() ? fmt::format("answered {}", answer.status) : answer.failure;
  return error_of(fmt::format(
      "{}could not be read: {}; try again, set HF_ENDPOINT to one that this host can reach, or "
      "copy the files here and give their path",
      start, cause));
}

}  // namespace

bool is_repository_name(const std::string& name) {
  return is_plain_path(name) && std::count(name.begin(), name.end(), '/') <= 1;
}

std::string Hub::folder(const Repository& repository) const {
  std::string name = repository.name;
  if (const auto slash = name.find('/'); slash != std::string::npos) {
    name.replace(slash, 1, "--");
  }
  const char* const kind = repository.kind == RepositoryKind::kModel ? "models--" : "datasets--";
  return (fs::path(terms_.cache) / (kind + name)).string();
}

std::optional<std::string> Hub::cached(const Repository& repository) const {
  if (!is_repository_name(repository.name) || !is_plain_path(repository.revision)) {
    return std::nullopt;
  }
  const fs::path in = folder(repository);
  const std::string commit = is_commit(repository.revision)
                                 ? repository.revision
                                 : first_line(in / "refs" / repository.revision);
  return is_commit(commit) ? std::optional((in / "snapshots" / commit).string()) : std::nullopt;
}

std::string Hub::url(const Repository& repository, const std::string& rest, bool api) const {
  const bool model = repository.kind == RepositoryKind::kModel;
  const char* const place =
      api ? (model ? "api/models/" : "api/datasets/") : (model ? "" : "datasets/");
  return fmt::format("{}/{}{}/{}", terms_.endpoint, place, repository.name, rest);
}

base::Result<Snapshot> Hub::look_up(const Repository& repository) const {
  if (const auto known = cached(repository)) {
    if (auto snapshot = noted(folder(repository), fs::path(*known).filename().string())) {
      return std::move(*snapshot);
    }
  }
  return ask(repository);
}

base::Result<Snapshot> Hub::ask(const Repository& repository) const {
  const std::string what = words_of(repository);
  if (!is_repository_name(repository.name) || !is_plain_path(repository.revision)) {
    return tl::unexpected(error_of(what + ": no repository can have such a name or revision"));
  }
  if (terms_.offline) {
    return tl::unexpected(error_of(
        fmt::format("{}: not whole in the hub's cache ({}), and HF_HUB_OFFLINE forbids to fetch it",
                    what, folder(repository))));
  }
  if (terms_.endpoint.rfind("http://", 0) != 0 && terms_.endpoint.rfind("https://", 0) != 0) {
    return tl::unexpected(error_of(
        fmt::format("HF_ENDPOINT: \"{}\" must start with http:// or https://", terms_.endpoint)));
  }
  // A branch's name may hold slashes, which the hub takes for its own unless they are escaped.
  std::string revision = repository.revision;
  for (auto at = revision.find('/'); at != std::string::npos; at = revision.find('/', at)) {
    revision.replace(at, 1, "%2F");
  }
  const Downloaded answer = download({url(repository, "revision/" + revision, true), terms_.token,
                                      terms_.ca_file, nullptr, kListBytesMax});
  if (answer.status != 200 || !answer.failure.empty()) {
    return tl::unexpected(why_not(what, terms_, answer));
  }
  const auto told = nlohmann::json::parse(answer.body, nullptr, false);
  Snapshot out;
  bool good = told.is_object() && told.contains("sha") && told["sha"].is_string() &&
              told.contains("siblings") && told["siblings"].is_array();
  if (good) {
    out.commit = told["sha"].get<std::string>();
    for (const auto& one : told["siblings"]) {
      good = good && one.is_object() && one.contains("rfilename") && one["rfilename"].is_string();
      out.files.push_back(good ? one["rfilename"].get<std::string>() : std::string());
    }
  }
  if (!good || !is_commit(out.commit) ||
      !std::all_of(out.files.begin(), out.files.end(), is_safe_file)) {
    return tl::unexpected(
        error_of(fmt::format("{}: what {} told of it is not what a hub tells; check HF_ENDPOINT",
                             what, terms_.endpoint)));
  }
  std::sort(out.files.begin(), out.files.end());
  return out;
}

base::Status Hub::fetch_file(const Repository& repository, const std::string& commit,
                             const std::string& file, const std::string& path) const {
  const std::string what = fmt::format("{}, file {}", words_of(repository), file);
  if (terms_.offline) {
    return tl::unexpected(
        error_of(what + ": not in the hub's cache, and HF_HUB_OFFLINE forbids to fetch it"));
  }
  base::log_info("hub", fmt::format("Fetching {} from {}", what, terms_.endpoint));
  DraftFile draft(path);
  if (draft.file() == nullptr) {
    return tl::unexpected(draft.why());
  }
  const Downloaded answer =
      download({url(repository, fmt::format("resolve/{}/{}", commit, escaped(file)), false),
                terms_.token, terms_.ca_file, draft.file()});
  if (answer.status != 200 || !answer.failure.empty()) {
    return tl::unexpected(why_not(what, terms_, answer));
  }
  return draft.publish() ? base::Status() : tl::unexpected(draft.why());
}

base::Result<std::string> Hub::fetch(const Repository& repository, const Snapshot& snapshot,
                                     const std::vector<std::string>& files) const {
  const fs::path in = folder(repository);
  const fs::path to = in / "snapshots" / snapshot.commit;
  for (const std::string& file : files) {
    std::error_code error;
    if (std::find(snapshot.files.begin(), snapshot.files.end(), file) == snapshot.files.end()) {
      return tl::unexpected(
          error_of(fmt::format("{}: it has no file {}", words_of(repository), file)));
    }
    if (fs::is_regular_file(to / file, error)) {
      continue;
    }
    if (auto fetched = fetch_file(repository, snapshot.commit, file, (to / file).string());
        !fetched) {
      return tl::unexpected(fetched.error());
    }
  }
  std::string list;
  for (const std::string& file : snapshot.files) {
    list += file + "\n";
  }
  auto kept = noted(in, snapshot.commit) ? base::Status()
                                         : write_whole(list_path(in, snapshot.commit), list);
  const fs::path ref = in / "refs" / repository.revision;
  if (kept && !is_commit(repository.revision) && first_line(ref) != snapshot.commit) {
    kept = write_whole(ref, snapshot.commit);
  }
  return kept ? base::Result<std::string>(to.string()) : tl::unexpected(kept.error());
}

}  // namespace tutti::hub
