#include "coordinator/ledger/text_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace tutti::ledger {
namespace {

constexpr std::size_t kPendingMax = 1U << 20U;

}  // namespace

TextStore::TextStore(int fd, std::string folder) : fd_(fd), folder_(std::move(folder)) {
  pending_.reserve(kPendingMax);
}

TextStore::TextStore(TextStore&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      folder_(std::move(other.folder_)),
      pending_(std::move(other.pending_)),
      written_(other.written_) {}

TextStore& TextStore::operator=(TextStore&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = std::exchange(other.fd_, -1);
    folder_ = std::move(other.folder_);
    pending_ = std::move(other.pending_);
    written_ = other.written_;
  }
  return *this;
}

TextStore::~TextStore() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

base::Result<TextStore> TextStore::open(const std::string& folder) {
  std::string path = folder + "/.texts.XXXXXX";
  std::vector<char> name(path.begin(), path.end());
  name.push_back('\0');
  const int fd = ::mkstemp(name.data());
  if (fd < 0) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("cannot create a file in the run folder {}: {}; choose another "
                                  "report_dir or make it writable",
                                  folder, std::strerror(errno)));
  }
  ::unlink(name.data());
  return TextStore(fd, folder);
}

base::Result<std::uint64_t> TextStore::append(std::string_view bytes) {
  const std::uint64_t offset = size_bytes();
  if (pending_.size() + bytes.size() > kPendingMax) {
    if (auto done = flush(); !done) {
      return tl::unexpected<base::Error>(done.error());
    }
  }
  pending_.append(bytes);
  return offset;
}

base::Status TextStore::flush() {
  std::size_t from = 0;
  while (from < pending_.size()) {
    const ssize_t n = ::pwrite(fd_, pending_.data() + from, pending_.size() - from,
                               static_cast<off_t>(written_ + from));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return base::fail(base::ExitCode::kExecution,
                        fmt::format("cannot store reply texts in the run folder {} ({} bytes so "
                                    "far): {}; free space there or choose another report_dir",
                                    folder_, written_, std::strerror(errno)));
    }
    from += static_cast<std::size_t>(n);
  }
  written_ += pending_.size();
  pending_.clear();
  return {};
}

base::Status TextStore::read(std::uint64_t offset, std::size_t size, std::string& out) const {
  if (offset + size > size_bytes()) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("text {}+{} is beyond the end of the text file ({} bytes)",
                                  offset, size, size_bytes()));
  }
  // A text is never split between file and buffer: append() flushes the buffer whole.
  if (offset >= written_) {
    out.assign(pending_, offset - written_, size);
    return {};
  }
  out.resize(size);
  std::size_t from = 0;
  while (from < size) {
    const ssize_t n =
        ::pread(fd_, out.data() + from, size - from, static_cast<off_t>(offset + from));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return base::fail(base::ExitCode::kExecution,
                        fmt::format("cannot read reply texts back from the run folder {}: {}",
                                    folder_, n == 0 ? "file is short" : std::strerror(errno)));
    }
    from += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace tutti::ledger
