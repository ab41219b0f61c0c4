#include "coordinator/report/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/id.h"

namespace tutti::report {
namespace {

constexpr std::size_t kPendingMax = 1U << 20U;

base::Error cannot(const std::string& path, int error) {
  return {base::ExitCode::kExecution,
          fmt::format("cannot write {}: {}; free space or make the run folder writable", path,
                      std::strerror(error))};
}

// A rename is on disk only once its folder is. 0, or errno.
int sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  // Some network file systems cannot sync a folder and say EINVAL; the file itself is synced.
  const int error = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  ::close(fd);
  return error;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

base::Status write_whole(const std::string& path, std::string_view bytes, bool to_disk) {
  auto file = AtomicFile::create(path);
  if (!file) {
    return tl::unexpected<base::Error>(file.error());
  }
  file->append(bytes);
  return file->commit(to_disk);
}

}  // namespace

AtomicFile::AtomicFile(int fd, std::string path, std::string temporary)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {
  pending_.reserve(kPendingMax);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      pending_(std::move(other.pending_)),
      error_(other.error_) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

base::Result<AtomicFile> AtomicFile::create(const std::string& path) {
  std::error_code made;
  std::filesystem::create_directories(folder_of(path), made);
  if (made) {
    return tl::unexpected<base::Error>(cannot(path, made.value()));
  }
  const std::string temporary = base::draft_path(path);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return tl::unexpected<base::Error>(cannot(path, errno));
  }
  return AtomicFile(fd, path, temporary);
}

void AtomicFile::append(std::string_view bytes) {
  pending_.append(bytes);
  if (pending_.size() >= kPendingMax) {
    flush();
  }
}

void AtomicFile::flush() {
  std::string_view rest = pending_;
  while (!rest.empty() && error_ == 0) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n > 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      error_ = n == 0 ? ENOSPC : errno;
    }
  }
  pending_.clear();
}

base::Status AtomicFile::commit(bool to_disk) {
  flush();
  if (to_disk && error_ == 0 && ::fsync(fd_) != 0) {
    error_ = errno;
  }
  // Network file systems report a full disk as late as here.
  if (::close(std::exchange(fd_, -1)) != 0 && error_ == 0) {
    error_ = errno;
  }
  if (error_ == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    error_ = errno;
  }
  if (error_ != 0) {
    return tl::unexpected<base::Error>(cannot(path_, error_));
  }
  temporary_.clear();
  if (!to_disk) {
    return {};
  }
  if (const int error = sync_folder(folder_of(path_)); error != 0) {
    return tl::unexpected<base::Error>(cannot(path_, error));
  }
  return {};
}

base::Status write_atomically(const std::string& path, std::string_view bytes) {
  return write_whole(path, bytes, true);
}

base::Status replace_quickly(const std::string& path, std::string_view bytes) {
  return write_whole(path, bytes, false);
}

}  // namespace tutti::report
