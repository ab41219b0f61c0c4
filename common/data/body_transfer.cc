#include "common/data/body_transfer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/base/check.h"
#include "common/base/id.h"

namespace tutti::data {
namespace {

// Bodies are text that repeats itself: level 3 halves them at a fraction of a network's cost.
constexpr int kLevel = 3;

base::Status disk_error(const std::string& path, const char* what) {
  return base::fail(base::ExitCode::kSetup,
                    fmt::format("{}: {}: {}; free space, or give another --cache-dir", path, what,
                                std::strerror(errno)));
}

// What killed processes left: their drafts have names nobody comes back to.
void drop_forgotten_drafts(const std::string& folder) {
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (at->path().extension() == ".draft" && at->last_write_time(gone) < old && !gone) {
      std::filesystem::remove(at->path(), gone);
    }
  }
}

bool is_hash(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string compress_slice(std::string_view slice) {
  std::string out(ZSTD_compressBound(slice.size()), '\0');
  const std::size_t n = ZSTD_compress(out.data(), out.size(), slice.data(), slice.size(), kLevel);
  TUTTI_CHECK(ZSTD_isError(n) == 0);  // only a too small buffer can fail, and it is the bound
  out.resize(n);
  return out;
}

base::Result<std::string> expand_slice(std::string_view compressed) {
  const unsigned long long size = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > kSliceBytes) {
    return base::fail(base::ExitCode::kSetup, "a slice of what was sent is damaged or too large");
  }
  std::string out(size, '\0');
  const std::size_t n =
      ZSTD_decompress(out.data(), out.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(n) != 0 || n != size) {
    return base::fail(base::ExitCode::kSetup, "a slice of what was sent is damaged");
  }
  return out;
}

BodyCache::BodyCache(std::string folder, std::string kind)
    : folder_(std::move(folder)), kind_(std::move(kind)) {}

BodyCache::~BodyCache() { drop(); }

std::string BodyCache::path_of(const std::string& hash) const {
  return fmt::format("{}/{}.{}", folder_, hash, kind_);
}

void BodyCache::drop() {
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
    unlink(partial_path_.c_str());
  }
}

base::Result<BodySet> BodyCache::find(const std::string& hash) const {
  if (!is_hash(hash)) {
    return base::fail(base::ExitCode::kSetup, "a body set's name is 32 hex digits");
  }
  return BodySet::open(path_of(hash), hash);
}

base::Status BodyCache::begin(const std::string& hash, std::uint64_t bytes) {
  drop();
  if (!is_hash(hash)) {
    return base::fail(base::ExitCode::kSetup, "a body set's name is 32 hex digits");
  }
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  hash_ = hash;
  bytes_ = bytes;
  received_ = 0;
  drop_forgotten_drafts(folder_);
  // Agents of one host, or of several over a shared folder, may receive the same set at once.
  partial_path_ = base::draft_path(path_of(hash));
  fd_ = open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    return disk_error(partial_path_, "cannot be made");
  }
  return {};
}

base::Status BodyCache::add(std::uint64_t offset, std::string_view compressed) {
  if (fd_ < 0 || offset != received_) {
    return base::fail(base::ExitCode::kSetup, "a slice came out of order");
  }
  const auto slice = expand_slice(compressed);
  if (!slice) {
    return tl::unexpected(slice.error());
  }
  if (received_ + slice->size() > bytes_) {
    return base::fail(base::ExitCode::kSetup, "what was sent is longer than announced");
  }
  for (std::size_t done = 0; done < slice->size();) {
    const ssize_t n = write(fd_, slice->data() + done, slice->size() - done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return disk_error(partial_path_, "cannot be written");
    }
    done += static_cast<std::size_t>(n);
  }
  received_ += slice->size();
  return {};
}

base::Result<std::string> BodyCache::finish_file() {
  if (fd_ < 0 || received_ != bytes_) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("what was sent ended at {} of {} bytes", received_, bytes_));
  }
  close(std::exchange(fd_, -1));
  const std::string path = path_of(hash_);
  if (rename(partial_path_.c_str(), path.c_str()) != 0) {
    const auto status = disk_error(path, "cannot be renamed");
    unlink(partial_path_.c_str());
    return tl::unexpected(status.error());
  }
  return path;
}

base::Result<BodySet> BodyCache::finish() {
  const auto path = finish_file();
  if (!path) {
    return tl::unexpected(path.error());
  }
  auto set = BodySet::open(*path, hash_);
  if (!set) {
    unlink(path->c_str());
  }
  return set;
}

}  // namespace tutti::data
