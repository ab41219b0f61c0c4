#include "common/wire/zap.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

#include <zmq.hpp>

namespace tutti::wire {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kCurveKeyBytes = 32;
// version, request id, domain, address, routing id, mechanism, credentials
constexpr std::size_t kRequestParts = 7;

}  // namespace

Doorkeeper::~Doorkeeper() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

base::Status Doorkeeper::start(zmq::context_t& context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (thread_.joinable()) {
    return {};
  }
  try {
    zmq::socket_t socket(context, zmq::socket_type::rep);
    socket.set(zmq::sockopt::linger, 0);
    socket.bind(kZapEndpoint);
    thread_ = std::thread([this, owned = std::move(socket)]() mutable { serve(owned); });
  } catch (const zmq::error_t& error) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("cannot start the key check: {}", error.what()));
  }
  return {};
}

void Doorkeeper::allow(const std::vector<std::string>& public_keys) {
  const std::lock_guard<std::mutex> lock(mutex_);
  allowed_ = {public_keys.begin(), public_keys.end()};
}

std::uint64_t Doorkeeper::denied() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return denied_;
}

std::string Doorkeeper::last_denied() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_denied_;
}

bool Doorkeeper::admits(std::string_view mechanism, std::string_view credentials,
                        std::string_view address) {
  std::array<char, 41> key{};
  const bool curve = mechanism == "CURVE" && credentials.size() == kCurveKeyBytes;
  if (curve) {
    std::array<std::uint8_t, kCurveKeyBytes> raw{};
    std::copy(credentials.begin(), credentials.end(), raw.begin());
    zmq_z85_encode(key.data(), raw.data(), raw.size());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (curve && allowed_.contains(key.data())) {
    return true;
  }
  ++denied_;
  last_denied_ = fmt::format("{} from {}", curve ? key.data() : "no key", address);
  return false;
}

void Doorkeeper::serve(zmq::socket_t& socket) {
  // Signals are for the threads that wait for them.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  try {
    while (true) {
      std::vector<zmq::message_t> parts;
      do {
        parts.emplace_back();
        static_cast<void>(socket.recv(parts.back(), zmq::recv_flags::none));
      } while (parts.back().more());
      const bool admitted =
          parts.size() >= kRequestParts &&
          admits(parts[5].to_string_view(), parts[6].to_string_view(), parts[3].to_string_view());
      const std::string request = parts.size() > 1 ? parts[1].to_string() : std::string();
      const std::array<std::string, 6> reply = {"1.0",
                                                request,
                                                admitted ? "200" : "400",
                                                admitted ? "welcome" : "key not on the allow-list",
                                                "",
                                                ""};
      for (std::size_t i = 0; i < reply.size(); ++i) {
        socket.send(zmq::buffer(reply[i]),
                    i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
      }
    }
  } catch (const zmq::error_t&) {
    // The context was shut down: the end of this thread's work.
  }
}

}  // namespace tutti::wire
