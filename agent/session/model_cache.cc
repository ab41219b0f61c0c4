#include "agent/session/model_cache.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "common/model/model_pack.h"

namespace tutti::session {

base::Result<bool> ModelCache::open(const std::string& hash, std::uint64_t bytes) {
  hash_ = hash;
  if (load()) {
    return true;
  }
  if (const auto status = files_.begin(hash, bytes); !status) {
    return tl::unexpected(status.error());
  }
  return false;
}

base::Status ModelCache::add(std::uint64_t offset, std::string_view compressed) {
  return files_.add(offset, compressed);
}

base::Status ModelCache::finish() {
  if (const auto path = files_.finish_file(); !path) {
    return tl::unexpected(path.error());
  }
  return load();
}

base::Status ModelCache::load() {
  const std::string path = files_.path_of(hash_);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  packed_ = std::move(bytes).str();
  if (!file || model::content_hash(packed_) != hash_) {
    packed_.clear();
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: not the model with this hash; it is damaged", path));
  }
  return {};
}

base::Result<model::TokenCounter> ModelCache::counter() {
  const std::string packed = std::exchange(packed_, {});
  const auto files = model::unpack(packed, "the coordinator's model " + hash_);
  return files ? model::TokenCounter::open(*files) : tl::unexpected(files.error());
}

}  // namespace tutti::session
