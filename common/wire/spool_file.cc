#include "common/wire/spool_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tutti::wire {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "TUTTISPL";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSignedFrom = 8;  // the magic is not covered by the checksum
constexpr std::size_t kSumAt = 48;

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

}  // namespace

SpoolHeader spool_header(const base::Id& run, std::uint32_t agent, std::uint64_t number,
                         std::string_view payload) {
  SpoolHeader header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  put(&header[8], kVersion, 4);
  put(&header[12], agent, 4);
  put(&header[16], run.high, 8);
  put(&header[24], run.low, 8);
  put(&header[32], number, 8);
  put(&header[40], payload.size(), 8);
  put(&header[kSumAt], checksum(header.data(), payload), 8);
  return header;
}

namespace {

struct Found {
  SpoolFrame frame;
  std::size_t bytes = 0;
};

// The frame that begins at `at`, or why there is none.
std::optional<Found> frame_at(std::string_view file, std::size_t at, std::string& why) {
  const std::string_view rest = file.substr(at);
  if (rest.substr(0, kMagic.size()) != kMagic) {
    why = "not the beginning of a frame";
    return std::nullopt;
  }
  if (rest.size() < kSpoolHeaderBytes) {
    why = "torn header";
    return std::nullopt;
  }
  const std::uint64_t version = get(&rest[8], 4);
  const std::uint64_t length = get(&rest[40], 8);
  if (version != kVersion) {
    why = fmt::format("frame version {} (this program reads {})", version, kVersion);
    return std::nullopt;
  }
  if (length > rest.size() - kSpoolHeaderBytes) {
    why = fmt::format("torn frame: {} bytes announced, {} there", length,
                      rest.size() - kSpoolHeaderBytes);
    return std::nullopt;
  }
  const std::string_view payload = rest.substr(kSpoolHeaderBytes, length);
  if (checksum(rest.data(), payload) != get(&rest[kSumAt], 8)) {
    why = "checksum mismatch";
    return std::nullopt;
  }
  Found found;
  found.frame.run = {get(&rest[16], 8), get(&rest[24], 8)};
  found.frame.agent = static_cast<std::uint32_t>(get(&rest[12], 4));
  found.frame.number = get(&rest[32], 8);
  found.frame.bytes = payload;
  found.bytes = kSpoolHeaderBytes + length;
  return found;
}

void scan_file(const std::string& path, std::string_view file, SpoolScan& scan,
               const std::function<void(const SpoolFrame&)>& on_frame) {
  std::size_t at = 0;
  while (at < file.size()) {
    std::string why;
    if (const auto found = frame_at(file, at, why)) {
      on_frame(found->frame);
      ++scan.frames;
      scan.bytes += found->frame.bytes.size();
      at += found->bytes;
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
                                   const std::function<void(const SpoolFrame&)>& on_frame) {
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
  if (error) {
    return base::fail(base::ExitCode::kInput, fmt::format("{}: {}", path, error.message()));
  }
  SpoolScan scan;
  for (const auto& name : files) {
    std::ifstream in(name, std::ios::binary | std::ios::ate);
    if (!in) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("{}: cannot be read ({})", name, std::strerror(errno)));
    }
    std::string file(static_cast<std::size_t>(in.tellg()), '\0');
    in.seekg(0);
    in.read(file.data(), static_cast<std::streamsize>(file.size()));
    file.resize(static_cast<std::size_t>(in.gcount()));
    ++scan.files;
    scan_file(name, file, scan, on_frame);
  }
  return scan;
}

}  // namespace tutti::wire
