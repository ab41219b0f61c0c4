#pragma once

// TextStore: an append-only file of byte strings in the run folder, so that texts of millions of
// records cost disk and not memory. The file has no name (it is unlinked as soon as it is open): a
// crash leaves nothing behind, and nobody can mistake it for a result. Owned by one thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace tutti::ledger {

class TextStore {
 public:
  // `folder` must exist.
  static base::Result<TextStore> open(const std::string& folder);

  TextStore(const TextStore&) = delete;
  TextStore& operator=(const TextStore&) = delete;
  TextStore(TextStore&& other) noexcept;
  TextStore& operator=(TextStore&& other) noexcept;
  ~TextStore();

  // The offset to read it back from. Fails when the disk does (full, quota).
  base::Result<std::uint64_t> append(std::string_view bytes);

  base::Status read(std::uint64_t offset, std::size_t size, std::string& out) const;

  std::uint64_t size_bytes() const { return written_ + pending_.size(); }

 private:
  TextStore(int fd, std::string folder);
  base::Status flush();

  int fd_ = -1;
  std::string folder_;
  std::string pending_;        // not yet in the file
  std::uint64_t written_ = 0;  // bytes in the file
};

}  // namespace tutti::ledger
