#pragma once

// RustText: bytes that came out of the Rust library, given back when it ends. Internal to this
// folder; one owner.

#include <string_view>

#include "common/rust/abi.h"

namespace tutti::model {

class RustText {
 public:
  RustText() = default;
  RustText(const RustText&) = delete;
  RustText& operator=(const RustText&) = delete;
  ~RustText() { tutti_bytes_free(bytes_); }

  TuttiBytes* out() { return &bytes_; }
  std::string_view text() const { return {bytes_.data, bytes_.size}; }

 private:
  TuttiBytes bytes_{nullptr, 0};
};

}  // namespace tutti::model
