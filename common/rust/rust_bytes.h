#pragma once

// RustBytes: bytes that came out of the Rust library, given back when it ends. One owner.

#include <string_view>

#include "common/rust/abi.h"

namespace tutti::rust {

class RustBytes {
 public:
  RustBytes() = default;
  RustBytes(const RustBytes&) = delete;
  RustBytes& operator=(const RustBytes&) = delete;
  ~RustBytes() { tutti_bytes_free(bytes_); }

  TuttiBytes* out() { return &bytes_; }
  std::string_view text() const { return {bytes_.data, bytes_.size}; }

 private:
  TuttiBytes bytes_{nullptr, 0};
};

}  // namespace tutti::rust
