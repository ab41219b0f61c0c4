#include "common/model/model_pack.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstdint>

namespace tutti::model {
namespace {

constexpr std::size_t kLengthBytes = 8;

template <class Files>
auto parts_of(Files& files) {
  return std::array{&files.tokenizer_json, &files.tokenizer_config, &files.special_tokens_map,
                    &files.chat_template};
}

base::Result<ModelFiles> damaged(const std::string& name) {
  return base::fail(base::ExitCode::kSetup, name + ": not a packed model");
}

}  // namespace

std::string pack(const ModelFiles& files) {
  std::string out;
  for (const std::string* part : parts_of(files)) {
    const std::uint64_t size = part->size();
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      out.push_back(static_cast<char>(static_cast<std::uint8_t>(size >> (8 * i))));
    }
    out += *part;
  }
  return out;
}

base::Result<ModelFiles> unpack(std::string_view bytes, const std::string& name) {
  ModelFiles files;
  files.name = name;
  for (std::string* part : parts_of(files)) {
    if (bytes.size() < kLengthBytes) {
      return damaged(name);
    }
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      size |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    }
    bytes.remove_prefix(kLengthBytes);
    if (size > bytes.size()) {
      return damaged(name);
    }
    part->assign(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (!bytes.empty() || files.tokenizer_json.empty()) {
    return damaged(name);
  }
  return files;
}

std::string content_hash(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace tutti::model
