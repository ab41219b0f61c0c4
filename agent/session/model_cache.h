#pragma once

// ModelCache: the packed model that this agent counts tokens with, in the cache folder beside the
// body sets, under its content hash: sent once, and read back whole and checked before it is used.
// One owner thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/data/body_transfer.h"
#include "common/model/token_counter.h"

namespace tutti::session {

class ModelCache {
 public:
  explicit ModelCache(std::string folder) : files_(std::move(folder), "model") {}

  // True: it is here. False: it must be sent, `bytes` long; slices in order, then finish().
  base::Result<bool> open(const std::string& hash, std::uint64_t bytes);
  base::Status add(std::uint64_t offset, std::string_view compressed);
  base::Status finish();

  bool wanted() const { return !hash_.empty(); }
  // Slow: it reads the tokenizer. The packed bytes are given up.
  base::Result<model::TokenCounter> counter();

 private:
  base::Status load();

  data::BodyCache files_;
  std::string hash_;
  std::string packed_;
};

}  // namespace tutti::session
