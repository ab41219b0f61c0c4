#pragma once

// A model's files as one string of bytes, so that a coordinator can send them to its agents and all
// count with the same. The content hash names them: in caches, in reports, in spools. Pure.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/model/model_files.h"

namespace tutti::model {

// Four files, each as a 64-bit little-endian length and its bytes, in the order of ModelFiles.
std::string pack(const ModelFiles& files);

// `name` is for messages. kSetup when `bytes` are not a pack.
base::Result<ModelFiles> unpack(std::string_view bytes, const std::string& name);

// xxh3-128, 32 hex digits.
std::string content_hash(std::string_view bytes);

}  // namespace tutti::model
