#include "agent/target/video_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tutti::target {

bool is_raw_video(std::string_view bytes) {
  // The first box of an MP4 file, behind its length.
  return bytes.substr(std::min<std::size_t>(4, bytes.size()), 4) == "ftyp";
}

base::Result<std::string> save_video(const VideoFolder& folder, std::uint32_t phase,
                                     std::uint64_t seq, std::string_view bytes) {
  if (folder.path.empty()) {
    return base::fail(
        base::ExitCode::kExecution,
        fmt::format("the reply is a raw MP4 of {} bytes, for which this agent has no folder: set "
                    "{} in its environment, or ask for response_format video_path",
                    bytes.size(), kVideoFolderVariable));
  }
  const std::filesystem::path path =
      std::filesystem::path(folder.path) / (base::query_id(folder.run, phase, seq) + ".mp4");
  std::error_code error;
  std::filesystem::create_directories(folder.path, error);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    std::filesystem::remove(path, error);
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("the reply is a raw MP4 of {} bytes, which cannot be written to "
                                  "{} ({}): make room there, or name another folder in {}",
                                  bytes.size(), path.string(),
                                  std::generic_category().message(errno), kVideoFolderVariable));
  }
  return path.string();
}

}  // namespace tutti::target
