#pragma once

// Doorkeeper: answers ZeroMQ's authentication requests (ZAP, RFC 27) of one context from an
// allow-list of CURVE public keys. Runs one thread; the public functions may be called from any.
// Private to sockets.cc.

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/result.h"

namespace zmq {
class context_t;
class socket_t;
}  // namespace zmq

namespace tutti::wire {

class Doorkeeper {
 public:
  Doorkeeper() = default;
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;
  ~Doorkeeper();

  // Begins to answer, once. The context must be shut down before this object ends.
  base::Status start(zmq::context_t& context);

  void allow(const std::vector<std::string>& public_keys);
  std::uint64_t denied() const;
  std::string last_denied() const;

 private:
  void serve(zmq::socket_t& socket);
  bool admits(std::string_view mechanism, std::string_view credentials, std::string_view address);

  mutable std::mutex mutex_;
  std::set<std::string> allowed_;  // Z85
  std::uint64_t denied_ = 0;
  std::string last_denied_;
  std::thread thread_;
};

}  // namespace tutti::wire
