#pragma once

// NullServer: tutti-mock processes that `tutti calibrate` starts on loopback, each on an address
// and a free port of its own, so that ports and descriptors of one do not bound the load. They end
// with their owner, by pid, and die with this process (parent-death signal). Main thread only.

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace tutti {

class NullServer {
 public:
  NullServer() = default;
  ~NullServer() { stop(); }
  NullServer(const NullServer&) = delete;
  NullServer& operator=(const NullServer&) = delete;

  // Replaces those that run by `count` new ones with these flags; `folder` takes their port files
  // and output. kSetup when tutti-mock is not beside this program or does not come up within 10 s.
  base::Status start(std::size_t count, const std::vector<std::string>& flags,
                     const std::string& folder);
  const std::vector<std::string>& urls() const { return urls_; }
  void stop();

 private:
  base::Status start_one(std::size_t number, const std::vector<std::string>& flags,
                         const std::string& folder);

  std::vector<pid_t> children_;
  std::vector<std::string> urls_;
};

}  // namespace tutti
