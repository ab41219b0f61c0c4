#pragma once

// Where videos go that a server sends as raw MP4 bytes: a folder of this host, one file for each
// query, named by its id in the event file. Written by a worker between two replies: such replies
// are few and large, and never streamed. Any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/id.h"
#include "common/base/result.h"

namespace tutti::target {

// The reference client's name for it.
inline constexpr const char* kVideoFolderVariable = "INFERENCE_ENDPOINT_VIDEOGEN_FALLBACK_DIR";

struct VideoFolder {
  std::string path;  // empty: raw videos are failures
  base::Id run{};
};

bool is_raw_video(std::string_view bytes);

// The file's path.
base::Result<std::string> save_video(const VideoFolder& folder, std::uint32_t phase,
                                     std::uint64_t seq, std::string_view bytes);

}  // namespace tutti::target
