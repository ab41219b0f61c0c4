#pragma once

// Hosts: a handful of "hosts" as network namespaces, for tests that pull cables. The calling
// process moves into a network of its own, the hub, with address 10.79.0.1 on the control net and
// 10.80.0.1 on the data net; host i (from 1) has 10.79.0.(10+i) and 10.80.0.(10+i). A cut cable
// keeps its carrier and its neighbours: what is sent into it vanishes, and nobody is told. Needs
// root and iproute2. What was made goes with the process. One thread; a process must have no other
// when it makes one, and stays in the hub.

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::testing_support {

class Hosts {
 public:
  enum class Net { kControl, kData };

  // Why there can be none here; empty: there can.
  static std::string missing();

  explicit Hosts(std::size_t count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  static std::string hub(Net net) { return net == Net::kControl ? "10.79.0.1" : "10.80.0.1"; }
  void cut(std::size_t host, Net net) const;
  void mend(std::size_t host, Net net) const;

  // While it lives, this thread is on that host: what it starts is there, and so are its sockets.
  class Visit {
   public:
    Visit(const Hosts& hosts, std::size_t host);
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    int hub_;
  };

 private:
  int hub_ = -1;
  std::vector<int> hosts_;
};

}  // namespace tutti::testing_support
