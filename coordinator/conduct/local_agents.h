#pragma once

// Agents that tutti starts on its own host: child processes of the `tutti-agent` beside our binary,
// dialling an ipc:// address in a private folder. They are in their own process groups, so that a
// ^C reaches the coordinator alone, and die with it (parent-death signal). They get our environment
// but for variables that are secret by their name. Main thread only.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace tutti::conduct {

struct ChildEnd {
  std::string name;
  std::string how;  // "exit code 3", "signal 9 (Killed)"
};

class LocalAgents {
 public:
  LocalAgents() = default;
  ~LocalAgents();  // kills and reaps what is left
  LocalAgents(const LocalAgents&) = delete;
  LocalAgents& operator=(const LocalAgents&) = delete;

  // Starts `count` agents named local-0 …; their output goes to log_folder/<name>.log.
  base::Status start(std::uint32_t count, const std::string& address, std::uint32_t workers,
                     const std::string& log_folder);
  // Children that ended since the last call.
  std::vector<ChildEnd> reap();
  // Waits up to `ms` for all to end by themselves, then SIGTERM, then SIGKILL.
  void stop(int ms);
  void kill_now();
  bool any() const { return !children_.empty(); }

 private:
  struct Child {
    std::string name;
    pid_t pid = -1;
  };
  void signal_all(int signal) const;

  std::vector<Child> children_;
};

// The folder of the running program, where tutti-agent lies beside tutti.
std::string program_folder();

}  // namespace tutti::conduct
