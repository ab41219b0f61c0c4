#include "agent/record/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace tutti::record {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "TUTTISPL";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 56;
constexpr std::size_t kSignedFrom = 8;  // the magic is not covered by the checksum
constexpr std::size_t kSumAt = 48;
constexpr std::uint64_t kFrameBytesMax = 1ULL << 30;

using Header = std::array<unsigned char, kHeaderBytes>;

void put(unsigned char* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    at[i] = static_cast<unsigned char>(value >> (8 * i));
  }
}

std::uint64_t get(const char* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  }
  return value;
}

std::uint64_t checksum(const void* header, std::string_view payload) {
  const XXH64_hash_t seed =
      XXH3_64bits(static_cast<const char*>(header) + kSignedFrom, kSumAt - kSignedFrom);
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

Header make_header(const base::Id& run, std::uint32_t agent, std::uint64_t batch,
                   std::string_view payload) {
  Header header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  put(&header[8], kVersion, 4);
  put(&header[12], agent, 4);
  put(&header[16], run.high, 8);
  put(&header[24], run.low, 8);
  put(&header[32], batch, 8);
  put(&header[40], payload.size(), 8);
  put(&header[kSumAt], checksum(header.data(), payload), 8);
  return header;
}

std::string reason(int error) { return std::strerror(error); }

// 0, or the errno that stopped it.
int write_all(int fd, const Header& header, std::string_view payload) {
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
  segments_.push_back(Segment{std::move(path), 0, batch});
  return {};
}

base::Status Spool::append(std::uint64_t batch, std::string_view bytes) {
  const std::uint64_t frame = kHeaderBytes + bytes.size();
  if (frame > kFrameBytesMax) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("spool: batch {} of {} bytes is above the frame limit of {}",
                                  batch, bytes.size(), kFrameBytesMax));
  }
  const std::uint64_t held = bytes_on_disk();
  if (held + frame > limits_.bytes_max) {
    return base::fail(
        base::ExitCode::kExecution,
        fmt::format("spool {} is full: {} of {} bytes wait for the coordinator's acknowledgement; "
                    "raise the spool's limit or find out why the coordinator is behind",
                    directory_, held, limits_.bytes_max));
  }
  if (segments_.empty() || segments_.back().bytes >= limits_.segment_bytes) {
    if (auto status = begin_segment(batch); !status) {
      return status;
    }
  }
  Segment& segment = segments_.back();
  const int error = write_all(file_.get(), make_header(run_, agent_, batch, bytes), bytes);
  if (error != 0) {
    // Half a frame would hide the next one from a reader that does not search.
    const bool cut = ftruncate(file_.get(), static_cast<off_t>(segment.bytes)) == 0;
    return base::fail(
        base::ExitCode::kExecution,
        fmt::format("spool file {}: {} while writing batch {}{}; free disk space", segment.path,
                    reason(error), batch, cut ? "" : " (its torn frame remains)"));
  }
  segment.bytes += frame;
  segment.last_batch = batch;
  return {};
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
  while (!segments_.empty() && segments_.front().last_batch <= up_to) {
    drop_first();
  }
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

// ---- reading ---------------------------------------------------------------------------------

namespace {

struct Frame {
  SpooledBatch batch;
  std::size_t bytes = 0;
};

// The frame that begins at `at`, or why there is none.
std::optional<Frame> frame_at(std::string_view file, std::size_t at, std::string& why) {
  const std::string_view rest = file.substr(at);
  if (rest.substr(0, kMagic.size()) != kMagic) {
    why = "not the beginning of a frame";
    return std::nullopt;
  }
  if (rest.size() < kHeaderBytes) {
    why = "torn header";
    return std::nullopt;
  }
  const std::uint64_t version = get(&rest[8], 4);
  const std::uint64_t length = get(&rest[40], 8);
  if (version != kVersion) {
    why = fmt::format("frame version {} (this program reads {})", version, kVersion);
    return std::nullopt;
  }
  if (length > rest.size() - kHeaderBytes) {
    why =
        fmt::format("torn frame: {} bytes announced, {} there", length, rest.size() - kHeaderBytes);
    return std::nullopt;
  }
  const std::string_view payload = rest.substr(kHeaderBytes, length);
  if (checksum(rest.data(), payload) != get(&rest[kSumAt], 8)) {
    why = "checksum mismatch";
    return std::nullopt;
  }
  Frame frame;
  frame.batch.run = {get(&rest[16], 8), get(&rest[24], 8)};
  frame.batch.agent = static_cast<std::uint32_t>(get(&rest[12], 4));
  frame.batch.number = get(&rest[32], 8);
  frame.batch.bytes = payload;
  frame.bytes = kHeaderBytes + length;
  return frame;
}

void scan_file(const std::string& path, std::string_view file, SpoolScan& scan,
               const std::function<void(const SpooledBatch&)>& on_batch) {
  std::size_t at = 0;
  while (at < file.size()) {
    std::string why;
    if (const auto frame = frame_at(file, at, why)) {
      on_batch(frame->batch);
      ++scan.batches;
      scan.bytes += frame->batch.bytes.size();
      at += frame->bytes;
      continue;
    }
    // Look for the next place that is a whole frame; the damage is what lies before it.
    std::size_t next = at;
    std::string ignored;
    do {
      next = file.find(kMagic, next + 1);
    } while (next != std::string_view::npos && !frame_at(file, next, ignored));
    next = std::min(next, file.size());
    scan.skipped.push_back(
        fmt::format("{}: offset {}: {} bytes skipped: {}", path, at, next - at, why));
    at = next;
  }
}

}  // namespace

base::Result<SpoolScan> read_spool(const std::string& path,
                                   const std::function<void(const SpooledBatch&)>& on_batch) {
  std::error_code error;
  std::vector<std::string> files;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".spool") {
        files.push_back(it->path().string());
      }
    }
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  if (error && files.empty()) {
    return base::fail(base::ExitCode::kInput, fmt::format("{}: {}", path, error.message()));
  }
  SpoolScan scan;
  for (const auto& name : files) {
    std::ifstream in(name, std::ios::binary | std::ios::ate);
    if (!in) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("{}: cannot be read ({})", name, reason(errno)));
    }
    std::string file(static_cast<std::size_t>(in.tellg()), '\0');
    in.seekg(0);
    in.read(file.data(), static_cast<std::streamsize>(file.size()));
    file.resize(static_cast<std::size_t>(in.gcount()));
    scan_file(name, file, scan, on_batch);
  }
  return scan;
}

}  // namespace tutti::record
