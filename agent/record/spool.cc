#include "agent/record/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/wire/spool_file.h"

namespace tutti::record {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHeaderBytes = wire::kSpoolHeaderBytes;

std::string reason(int error) { return std::strerror(error); }

// 0, or the errno that stopped it.
int write_all(int fd, const wire::SpoolHeader& header, std::string_view payload) {
  std::size_t done = 0;
  const std::size_t total = header.size() + payload.size();
  while (done < total) {
    std::array<iovec, 2> parts{};
    int count = 0;
    if (done < header.size()) {
      parts[0] = {const_cast<unsigned char*>(header.data()) + done, header.size() - done};
      parts[1] = {const_cast<char*>(payload.data()), payload.size()};
      count = 2;
    } else {
      const std::size_t from = done - header.size();
      parts[0] = {const_cast<char*>(payload.data()) + from, payload.size() - from};
      count = 1;
    }
    const ssize_t n = writev(fd, parts.data(), count);
    if (n < 0 && errno != EINTR) {
      return errno;
    }
    done += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return 0;
}

bool read_all(int fd, char* to, std::uint64_t bytes, std::uint64_t from) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t n = pread(fd, to + done, bytes - done, static_cast<off_t>(from + done));
    if (n == 0 || (n < 0 && errno != EINTR)) {
      return false;
    }
    done += n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  return true;
}

// At the file's beginning.
bool write_over(int fd, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno != EINTR) {
      return false;
    }
    done += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return true;
}

}  // namespace

Spool::Spool(std::string directory, const base::Id& run, std::uint32_t agent, SpoolLimits limits)
    : directory_(std::move(directory)), run_(run), agent_(agent), limits_(limits) {}

base::Result<Spool> Spool::create(std::string directory, const base::Id& run, std::uint32_t agent,
                                  SpoolLimits limits) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory)) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("spool directory {}: cannot be made ({}); name one that can be "
                                  "written",
                                  directory, error ? error.message() : "not a directory"));
  }
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("spool directory {}: {}; name one that can be written", directory,
                                  reason(errno)));
  }
  return Spool(std::move(directory), run, agent, limits);
}

base::Status Spool::begin_segment(std::uint64_t batch) {
  std::string path = fmt::format("{}/{}-{}-{:012}.spool", directory_, run_.hex(), agent_, batch);
  sys::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("spool file {}: {}", path, reason(errno)));
  }
  file_ = std::move(file);
  frames_.clear();
  segments_.push_back(Segment{std::move(path), 0, 0});
  for (const auto& note : notes_) {
    if (auto status = write_frame(wire::kSpoolNote, note); !status) {
      std::error_code ignored;
      fs::remove(segments_.back().path, ignored);
      segments_.pop_back();
      file_.close();
      return status;
    }
  }
  return {};
}

base::Status Spool::write_frame(std::uint64_t number, std::string_view bytes) {
  Segment& segment = segments_.back();
  const auto header = wire::spool_header(run_, agent_, number, bytes);
  const int error = write_all(file_.get(), header, bytes);
  if (error != 0) {
    // Half a frame would hide the next one from a reader that does not search.
    const bool cut = ftruncate(file_.get(), static_cast<off_t>(segment.bytes)) == 0;
    return base::fail(
        base::ExitCode::kExecution,
        fmt::format("spool file {}: {} while writing {}{}; free disk space", segment.path,
                    reason(error),
                    number == wire::kSpoolNote ? "a note" : fmt::format("batch {}", number),
                    cut ? "" : " (its torn frame remains)"));
  }
  if (number != wire::kSpoolNote) {
    frames_.push_back({number, segment.bytes});
  }
  segment.bytes += kHeaderBytes + bytes.size();
  segment.last_batch = std::max(segment.last_batch, number);
  return {};
}

base::Status Spool::append(std::uint64_t batch, std::string_view bytes) {
  const std::uint64_t frame = kHeaderBytes + bytes.size();
  if (frame > wire::kSpoolFrameBytesMax) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("spool: batch {} of {} bytes is above the frame limit of {}",
                                  batch, bytes.size(), wire::kSpoolFrameBytesMax));
  }
  while (bytes_on_disk() + frame > limits_.bytes_max && (give_up_first() || give_up_part())) {
  }
  const std::uint64_t held = bytes_on_disk();
  if (held + frame > limits_.bytes_max) {
    return base::fail(
        base::ExitCode::kExecution,
        fmt::format("spool {} is full: {} of {} bytes wait for the coordinator's acknowledgement; "
                    "raise the spool's limit or find out why the coordinator is behind",
                    directory_, held, limits_.bytes_max));
  }
  while (true) {
    base::Status status;
    if (segments_.empty() || segments_.back().bytes >= limits_.segment_bytes) {
      status = begin_segment(batch);
    }
    if (status) {
      status = write_frame(batch, bytes);
    }
    if (status) {
      newest_ = batch;
      return status;
    }
    if (!give_up_first() && !give_up_part()) {
      return status;  // a disk that is full of what nobody else has
    }
  }
}

base::Status Spool::note(std::string_view bytes) {
  notes_.emplace_back(bytes);
  if (released_ && segments_.empty()) {
    return {};  // nobody will ask whose it was
  }
  return segments_.empty() ? begin_segment(newest_ + 1) : write_frame(wire::kSpoolNote, bytes);
}

// False when the oldest segment holds what only this spool has.
bool Spool::give_up_first() {
  if (segments_.empty() || segments_.front().last_batch == 0 ||
      segments_.front().last_batch > acknowledged_) {
    return false;
  }
  given_up_to_ = segments_.front().last_batch;
  drop_first();
  return true;
}

// Of the only segment, what the coordinator has: the rest is moved to the front, over it. Nothing
// that only this spool has is overwritten, and no room is needed for it; so the rest must not be
// longer than what goes, which also bounds how often a batch is moved.
bool Spool::give_up_part() {
  if (segments_.size() != 1 || frames_.empty()) {
    return false;
  }
  Segment& segment = segments_.front();
  const auto kept = std::find_if(frames_.begin(), frames_.end(), [this](const Frame& frame) {
    return frame.batch > acknowledged_;
  });
  if (kept == frames_.begin() || kept == frames_.end()) {
    return false;
  }
  std::string front;
  for (const auto& note : notes_) {
    const auto header = wire::spool_header(run_, agent_, wire::kSpoolNote, note);
    front.append(reinterpret_cast<const char*>(header.data()), header.size()).append(note);
  }
  const std::uint64_t from = kept->offset;
  const std::uint64_t to = front.size();
  const std::uint64_t bytes = segment.bytes - from;
  if (to + bytes > from) {
    return false;
  }
  const sys::Fd file(open(segment.path.c_str(), O_RDWR | O_CLOEXEC));  // file_ appends only
  front.resize(to + bytes);
  if (!file.is_open() || !read_all(file.get(), front.data() + to, bytes, from) ||
      !write_over(file.get(), front) ||
      ftruncate(file.get(), static_cast<off_t>(front.size())) != 0) {
    return false;
  }
  given_up_to_ = std::prev(kept)->batch;
  segment.bytes = front.size();
  frames_.erase(frames_.begin(), kept);
  for (Frame& frame : frames_) {
    frame.offset -= from - to;
  }
  return true;
}

void Spool::drop_first() {
  std::error_code ignored;  // a file that is gone already is what we want
  fs::remove(segments_.front().path, ignored);
  segments_.erase(segments_.begin());
  if (segments_.empty()) {
    file_.close();
  }
}

void Spool::forget(std::uint64_t up_to) {
  acknowledged_ = std::max(acknowledged_, up_to);
  while (released_ && !segments_.empty() && segments_.front().last_batch <= acknowledged_) {
    drop_first();
  }
}

void Spool::release() {
  released_ = true;
  forget(acknowledged_);
}

void Spool::discard() {
  while (!segments_.empty()) {
    drop_first();
  }
}

std::uint64_t Spool::bytes_on_disk() const {
  std::uint64_t sum = 0;
  for (const auto& segment : segments_) {
    sum += segment.bytes;
  }
  return sum;
}

}  // namespace tutti::record
