#include "tests/bench/centre_watch.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace tutti::centre {

ProcessUse use_of(pid_t pid) {
  ProcessUse use;
  if (pid <= 0) {
    return use;
  }
  const std::string folder = "/proc/" + std::to_string(pid);
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::ifstream in(task.path() / "schedstat");
    double ns = 0;
    if (in >> ns) {
      use.cpu_s += ns * 1e-9;
      use.main_cpu_s += task.path().filename() == std::to_string(pid) ? ns * 1e-9 : 0;
    }
  }
  std::ifstream status(folder + "/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") {
      status >> use.peak_rss_kb;
      break;
    }
  }
  return use;
}

}  // namespace tutti::centre
