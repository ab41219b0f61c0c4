#pragma once

// BodySet: all rendered bodies of a data set in one file, the thing sent to each agent once. The
// content hash (xxh3-128 over bodies and index) is its name in caches. A file is checked
// whole before a single row is handed out, so that rows need no check on the hot path. Writer and
// reader are each owned by one thread; an open BodySet is immutable and may be shared.
//
// Layout, little-endian: header (64 bytes: magic "TUTTIBOD", u32 version, u32 0, u64 rows, u64
// index_offset, u64 body_bytes, 16 bytes hash (high, low), 8 bytes 0), bodies back to back, zeros
// to a multiple of 8, index of {u64 offset from the file's start, u32 length, i32 splice or -1}.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace tutti::data {

struct BodyRow {
  std::string_view body;
  std::int32_t splice = -1;
};

struct BodySetInfo {
  std::string hash;  // 32 lower-case hex digits
  std::uint64_t rows = 0;
  std::uint64_t file_bytes = 0;
};

// Writes beside `path` and renames at finish(); destroyed before that, nothing stays behind.
class BodySetWriter {
 public:
  static base::Result<BodySetWriter> create(const std::string& path);
  BodySetWriter(BodySetWriter&&) noexcept;
  BodySetWriter& operator=(BodySetWriter&&) noexcept;
  ~BodySetWriter();

  // An empty body, one above kBodyBytesMax or a splice outside the body is refused.
  base::Status add(std::string_view body, std::int32_t splice);
  base::Result<BodySetInfo> finish();

 private:
  struct Out;
  explicit BodySetWriter(std::unique_ptr<Out> out);
  std::unique_ptr<Out> out_;
};

class BodySet {
 public:
  // Maps the file. Every offset, length, splice and the hash are checked; a non-empty
  // `expected_hash` must equal the content's.
  static base::Result<BodySet> open(const std::string& path, std::string_view expected_hash = {});
  // The same over bytes that outlive the set (tests, fuzzing).
  static base::Result<BodySet> over(std::string_view file);

  BodySet() = default;
  BodySet(BodySet&& other) noexcept;
  BodySet& operator=(BodySet&& other) noexcept;
  ~BodySet();

  std::uint64_t rows() const { return rows_; }
  BodyRow row(std::uint64_t i) const;  // i < rows(), checked
  const std::string& hash() const { return hash_; }
  // The file as it is, for sending it on.
  std::string_view file() const { return file_; }

 private:
  std::string_view file_;
  const char* index_ = nullptr;
  std::uint64_t rows_ = 0;
  std::string hash_;
  bool mapped_ = false;
};

}  // namespace tutti::data
