#pragma once

// ModelFiles: what a Hugging Face model folder has to say of its tokens: tokenizer.json, and of
// tokenizer_config.json, special_tokens_map.json and chat_template.jinja what is there. Read once;
// the fingerprint tells whether two hosts would count alike. Plain values.

#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace tutti::model {

struct ModelFiles {
  std::string name;  // for messages: the path
  std::string tokenizer_json;
  std::string tokenizer_config;    // JSON, or empty
  std::string special_tokens_map;  // JSON, or empty
  std::string chat_template;       // Jinja, or empty; goes before the one in tokenizer_config

  std::uint64_t fingerprint() const;  // of all bytes and of which file they are
};

inline constexpr std::size_t kModelFileBytesMax = std::size_t{256} << 20;

// `path`: a tokenizer.json, or a folder with one.
base::Result<ModelFiles> read_model_files(const std::string& path);

// Where the files of `name` lie: itself when it is a path; else, as "org/name", the newest snapshot
// in the hub's cache on this host (common/hub). Nothing is fetched. An error says where was looked
// and what to do.
base::Result<std::string> find_model(const std::string& name);
// The same, but what the cache does not have is fetched from the hub first. Blocking.
base::Result<std::string> fetch_model(const std::string& name);

}  // namespace tutti::model
