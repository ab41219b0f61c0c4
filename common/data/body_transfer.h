#pragma once

// How a body set travels: its file in slices, each compressed by itself. The receiver writes them
// into a cache folder under the set's content hash, so that the next run with the same bodies sends
// nothing. The packed model that agents count tokens with goes the same way. Slices come in order
// (the link sees to that); anything else is an error, and nothing is kept.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/data/body_set.h"

namespace tutti::data {

inline constexpr std::size_t kSliceBytes = std::size_t{1} << 20;  // before compression

std::string compress_slice(std::string_view slice);
// Refuses damage, and anything that would not be kSliceBytes or less.
base::Result<std::string> expand_slice(std::string_view compressed);

// The cache of one host. Files are named by content hash and checked whole when opened, so a
// damaged one is fetched again and a shared folder is safe.
class BodyCache {
 public:
  // `folder` is made if needed. `kind` ends the files' names.
  explicit BodyCache(std::string folder, std::string kind = "bodies");
  ~BodyCache();
  BodyCache(const BodyCache&) = delete;
  BodyCache& operator=(const BodyCache&) = delete;

  // The set with this hash, or the reason why it is not here.
  base::Result<BodySet> find(const std::string& hash) const;

  // Receiving: begin, then slices in order, then finish (which checks the hash).
  base::Status begin(const std::string& hash, std::uint64_t bytes);
  base::Status add(std::uint64_t offset, std::string_view compressed);
  base::Result<BodySet> finish();

  // For what is no body set: where the file with this hash is, or would be; and finish() without
  // looking at what came.
  std::string path_of(const std::string& hash) const;
  base::Result<std::string> finish_file();

 private:
  void drop();

  std::string folder_;
  std::string kind_;
  std::string hash_;
  std::string partial_path_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace tutti::data
