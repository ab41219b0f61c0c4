#include "common/wire/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include <zmq.hpp>

#include "common/base/check.h"
#include "common/wire/envelope.h"
#include "common/wire/zap.h"

namespace tutti::wire {
namespace {

constexpr const char* kZapDomain = "tutti";
constexpr int kSocketsMax = 16'384;      // of one context
constexpr int kBacklog = 1024;           // agents that dial in the same instant
constexpr int kHandshakeMs = 5'000;      // a half-open or foreign connection is dropped
constexpr int kTransportPingMs = 2'000;  // finds dead TCP connections, so that they reconnect
constexpr int kTransportDeadMs = 8'000;
constexpr std::uint32_t kMonitorEvery = 16;  // sends between two looks at a connection that stands

int millis(base::Duration duration) { return static_cast<int>(duration.ns / 1'000'000); }

auto refuse(std::string message) { return base::fail(base::ExitCode::kSetup, std::move(message)); }

// The parts of tcp://HOST:PORT; both empty for anything else.
struct TcpEndpoint {
  std::string host;
  std::string port;
};

TcpEndpoint tcp_parts(std::string_view endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kTcp) || colon < kTcp.size()) {
    return {};
  }
  return {std::string(endpoint.substr(kTcp.size(), colon - kTcp.size())),
          std::string(endpoint.substr(colon + 1))};
}

bool is_ipv4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_loopback_host(std::string host) {
  if (host == "localhost") {
    return true;
  }
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) {
    return ntohl(four.s_addr) >> 24 == 127;
  }
  if (!host.starts_with('[') || !host.ends_with(']')) {
    return false;
  }
  host = host.substr(1, host.size() - 2);
  in6_addr six{};
  if (inet_pton(AF_INET6, host.c_str(), &six) != 1) {
    return false;
  }
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

// libzmq takes port 99999 for another one.
bool is_port(const std::string& port, bool wildcard) {
  if (port == "*") {
    return wildcard;
  }
  return !port.empty() && port.size() <= 5 &&
         port.find_first_not_of("0123456789") == std::string::npos && std::stoi(port) <= 65'535 &&
         (wildcard || std::stoi(port) > 0);
}

// "" when the endpoint may be used as wanted.
std::string objection(const std::string& endpoint, const SocketOptions& options, bool bind) {
  if (!endpoint.starts_with("tcp://") && !endpoint.starts_with("ipc://")) {
    return fmt::format("{}: an endpoint begins with tcp:// or ipc://", endpoint);
  }
  if (endpoint.find(';') != std::string::npos) {
    return fmt::format("{}: a source address is not supported here; leave out \"…;\"", endpoint);
  }
  if (const TcpEndpoint parts = tcp_parts(endpoint); endpoint.starts_with("tcp://")) {
    if (parts.host.empty() || !is_port(parts.port, bind)) {
      return fmt::format("{}: not tcp://ADDRESS:PORT with a port up to 65535{}", endpoint,
                         bind ? " or *" : "");
    }
  }
  if (!options.keys && !options.insecure && !is_loopback_endpoint(endpoint)) {
    return fmt::format(
        "{}: leaves this host without encryption; give keys (tutti keys --help) or "
        "allow it (tutti: --insecure-agents, tutti-agent: --insecure)",
        endpoint);
  }
  if (options.keys && (!is_key(options.keys->public_key) || !is_key(options.keys->secret_key))) {
    return "the key pair is not one";
  }
  return "";
}

}  // namespace

struct SocketContext::State {
  // By itself a context takes 1,023 sockets, and a dialled peer has three: its own and two that
  // tell of its connection.
  State() { context.set(zmq::ctxopt::max_sockets, kSocketsMax); }

  zmq::context_t context{1};
  Doorkeeper doorkeeper;
  std::atomic<std::uint64_t> sockets{0};

  // The last socket is gone: let the doorkeeper's thread leave, then wait for lingering messages.
  ~State() { context.shutdown(); }
};

SocketContext::SocketContext() : state_(std::make_shared<State>()) {}

void SocketContext::allow(const std::vector<std::string>& public_keys) {
  state_->doorkeeper.allow(public_keys);
}

std::uint64_t SocketContext::denied() const { return state_->doorkeeper.denied(); }

std::string SocketContext::last_denied() const { return state_->doorkeeper.last_denied(); }

bool is_loopback_endpoint(std::string_view endpoint) {
  if (endpoint.starts_with("ipc://")) {
    return true;
  }
  return is_loopback_host(tcp_parts(endpoint).host);
}

// ---- what both kinds share --------------------------------------------------------------------

struct Socket::Core {
  Core(std::shared_ptr<SocketContext::State> shared, zmq::socket_type type)
      : state(std::move(shared)), socket(state->context, type) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  void remember_file();
  void set_options(const std::string& where, const SocketOptions& options);
  int part(zmq::message_t& into);
  void drop_rest();
  void watch();
  void read_monitor();
  void take_event(std::uint16_t event, std::uint32_t value);

  std::shared_ptr<SocketContext::State> state;  // first: outlives the sockets
  zmq::socket_t socket;
  zmq::socket_t monitor;  // DialSocket: what happens to the connection
  std::string endpoint;
  std::string file;  // ListenSocket on ipc: what it left in the file system, and
  ino_t inode = 0;   // … how to tell it from a successor's
  int fd = -1;
  std::uint64_t malformed = 0;
  // Input may wait: `fd` has told of something, or a send may have taken that word from it.
  bool stirred = true;
  bool connected = false;
  std::uint32_t sends = 0;
  std::string trouble;
};

// ZeroMQ leaves the socket file behind.
Socket::Core::~Core() {
  struct stat facts {};
  if (!file.empty() && ::stat(file.c_str(), &facts) == 0 && facts.st_ino == inode) {
    ::unlink(file.c_str());
  }
}

void Socket::Core::remember_file() {
  struct stat facts {};
  const std::string path = endpoint.substr(endpoint.find("//") + 2);
  if (!path.starts_with('@') && ::stat(path.c_str(), &facts) == 0) {
    file = path;
    inode = facts.st_ino;
  }
}

void Socket::Core::set_options(const std::string& where, const SocketOptions& options) {
  socket.set(zmq::sockopt::sndhwm, options.queue_max);
  socket.set(zmq::sockopt::rcvhwm, options.queue_max);
  socket.set(zmq::sockopt::linger, millis(options.linger));
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kEnvelopeBytesMax));
  // With IPv6 on, an IPv4 address would come back as a mapped one.
  socket.set(zmq::sockopt::ipv6, !is_ipv4(tcp_parts(where).host));
  socket.set(zmq::sockopt::immediate, false);
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  socket.set(zmq::sockopt::heartbeat_ivl, kTransportPingMs);
  socket.set(zmq::sockopt::heartbeat_timeout, kTransportDeadMs);
  socket.set(zmq::sockopt::heartbeat_ttl, kTransportDeadMs);
  if (options.keys) {
    socket.set(zmq::sockopt::curve_publickey, options.keys->public_key);
    socket.set(zmq::sockopt::curve_secretkey, options.keys->secret_key);
  }
}

// One part, or errno. EINTR is no answer: again.
int Socket::Core::part(zmq::message_t& into) {
  int got = -1;
  do {
    got = zmq_msg_recv(into.handle(), socket.handle(), ZMQ_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

void Socket::Core::drop_rest() {
  ++malformed;
  zmq::message_t rest;
  do {
    if (part(rest) < 0) {
      return;
    }
  } while (rest.more());
}

void Socket::Core::watch() {
  const std::string name = fmt::format("inproc://tutti-watch-{}", ++state->sockets);
  TUTTI_CHECK(zmq_socket_monitor(
                  socket.handle(), name.c_str(),
                  ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED |
                      ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                      ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) == 0);
  monitor = zmq::socket_t(state->context, zmq::socket_type::pair);
  monitor.set(zmq::sockopt::linger, 0);
  monitor.set(zmq::sockopt::rcvhwm, 0);  // the I/O thread must never wait for us
  monitor.connect(name);
}

// An event is two parts: event (16 bits) and value (32 bits) in host order, then the address.
void Socket::Core::read_monitor() {
  while (true) {
    zmq::message_t what;
    if (zmq_msg_recv(what.handle(), monitor.handle(), ZMQ_DONTWAIT) < 0) {
      return;
    }
    std::uint16_t event = 0;
    std::uint32_t value = 0;
    TUTTI_CHECK(what.size() == sizeof(event) + sizeof(value) && what.more());
    std::memcpy(&event, what.data(), sizeof(event));
    std::memcpy(&value, what.data<char>() + sizeof(event), sizeof(value));
    zmq::message_t address;
    static_cast<void>(zmq_msg_recv(address.handle(), monitor.handle(), ZMQ_DONTWAIT));
    take_event(event, value);
  }
}

void Socket::Core::take_event(std::uint16_t event, std::uint32_t value) {
  switch (event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      connected = true;
      trouble.clear();
      break;
    case ZMQ_EVENT_DISCONNECTED:
      connected = false;
      if (trouble.empty()) {
        trouble = fmt::format("{}: the connection broke; trying again", endpoint);
      }
      break;
    case ZMQ_EVENT_CONNECT_RETRIED:
      if (trouble.empty()) {
        trouble = fmt::format("{}: nobody answers there yet; trying again", endpoint);
      }
      break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      trouble =
          fmt::format("{}: turned us away (status {}); our public key is not on its allow-list",
                      endpoint, value);
      break;
    default:
      trouble = fmt::format(
          "{}: no common ground; is it tutti, and do both sides use keys, or neither? Is the "
          "listener's public key the right one?",
          endpoint);
      break;
  }
}

Socket::Socket(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&&) noexcept = default;
Socket::~Socket() = default;

int Socket::fd() const { return core_->fd; }

bool Socket::has_input() {
  core_->stirred = (core_->socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
  return core_->stirred;
}

bool Socket::may_have_input() const { return core_->stirred; }

void Socket::stir() { core_->stirred = true; }

const std::string& Socket::endpoint() const { return core_->endpoint; }

std::uint64_t Socket::malformed() const { return core_->malformed; }

// ---- listening --------------------------------------------------------------------------------

base::Result<ListenSocket> ListenSocket::open(const SocketContext& context,
                                              const std::string& endpoint,
                                              const SocketOptions& options) {
  if (const std::string reason = objection(endpoint, options, true); !reason.empty()) {
    return refuse(reason);
  }
  if (options.keys) {
    if (auto started = context.state()->doorkeeper.start(context.state()->context); !started) {
      return tl::unexpected(started.error());
    }
  }
  try {
    auto core = std::make_unique<Core>(context.state(), zmq::socket_type::router);
    core->set_options(endpoint, options);
    core->socket.set(zmq::sockopt::router_mandatory, true);
    core->socket.set(zmq::sockopt::backlog, kBacklog);
    if (options.keys) {
      core->socket.set(zmq::sockopt::curve_server, true);
      core->socket.set(zmq::sockopt::zap_domain, kZapDomain);
    }
    if (endpoint.starts_with("ipc://")) {
      const uid_t us = geteuid();
      TUTTI_CHECK(zmq_setsockopt(core->socket.handle(), ZMQ_IPC_FILTER_UID, &us, sizeof(us)) == 0);
    }
    core->socket.bind(endpoint);
    core->endpoint = core->socket.get(zmq::sockopt::last_endpoint);
    if (endpoint.starts_with("ipc://")) {
      core->remember_file();
    }
    core->fd = core->socket.get(zmq::sockopt::fd);
    return ListenSocket(std::move(core));
  } catch (const zmq::error_t& error) {
    return refuse(fmt::format("{}: cannot listen there: {}", endpoint, error.what()));
  }
}

SendResult ListenSocket::send(std::string_view peer, std::string_view bytes) {
  void* socket = core_->socket.handle();
  core_->stirred = true;
  int sent = -1;
  do {
    sent = zmq_send(socket, peer.data(), peer.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    return errno == EAGAIN ? SendResult::kFull : SendResult::kNoPeer;
  }
  // The peer's queue took the first part, so it takes the message.
  do {
    sent = zmq_send(socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? SendResult::kNoPeer : SendResult::kSent;
}

bool ListenSocket::receive(std::string& peer, std::string& bytes) {
  while (true) {
    zmq::message_t from;
    zmq::message_t payload;
    if (core_->part(from) < 0) {
      core_->stirred = false;
      return false;
    }
    if (!from.more() || core_->part(payload) < 0) {
      ++core_->malformed;
      continue;
    }
    if (payload.more()) {
      core_->drop_rest();
      continue;
    }
    peer.assign(from.data<char>(), from.size());
    bytes.assign(payload.data<char>(), payload.size());
    return true;
  }
}

// ---- dialling ---------------------------------------------------------------------------------

base::Result<DialSocket> DialSocket::open(const SocketContext& context, const std::string& endpoint,
                                          const SocketOptions& options) {
  if (const std::string reason = objection(endpoint, options, false); !reason.empty()) {
    return refuse(reason);
  }
  if (options.keys && !is_key(options.listener_key)) {
    return refuse(fmt::format("{}: the public key of the listening side is missing", endpoint));
  }
  if (!options.keys && !options.listener_key.empty()) {
    return refuse(
        fmt::format("{}: the other side has a key, so this side needs a key pair too", endpoint));
  }
  try {
    auto core = std::make_unique<Core>(context.state(), zmq::socket_type::dealer);
    core->set_options(endpoint, options);
    core->socket.set(zmq::sockopt::reconnect_ivl, millis(options.reconnect_first));
    core->socket.set(zmq::sockopt::reconnect_ivl_max, millis(options.reconnect_max));
    if (options.keys) {
      core->socket.set(zmq::sockopt::curve_serverkey, options.listener_key);
    }
    core->endpoint = endpoint;
    core->watch();
    core->socket.connect(endpoint);
    core->fd = core->socket.get(zmq::sockopt::fd);
    return DialSocket(std::move(core));
  } catch (const zmq::error_t& error) {
    return refuse(fmt::format("{}: cannot dial it: {}", endpoint, error.what()));
  }
}

SendResult DialSocket::send(std::string_view bytes) {
  // So that its events do not heap up; they are few, and a look in vain costs as much as a receive.
  if (!core_->connected || ++core_->sends % kMonitorEvery == 0) {
    core_->read_monitor();
  }
  core_->stirred = true;
  int sent = -1;
  do {
    sent = zmq_send(core_->socket.handle(), bytes.data(), bytes.size(), ZMQ_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? SendResult::kFull : SendResult::kSent;
}

bool DialSocket::receive(std::string& bytes) {
  while (true) {
    zmq::message_t payload;
    if (core_->part(payload) < 0) {
      core_->stirred = false;
      return false;
    }
    if (payload.more()) {
      core_->drop_rest();
      continue;
    }
    bytes.assign(payload.data<char>(), payload.size());
    return true;
  }
}

bool DialSocket::connected() {
  core_->read_monitor();
  return core_->connected;
}

const std::string& DialSocket::trouble() {
  core_->read_monitor();
  return core_->trouble;
}

// ---- waiting ----------------------------------------------------------------------------------

bool wait_input(std::span<Socket* const> sockets, std::span<WaitFd> fds, base::Duration at_most) {
  std::vector<pollfd> polled;
  polled.reserve(sockets.size() + fds.size());
  bool input = false;
  for (Socket* socket : sockets) {
    input = (socket->may_have_input() && socket->has_input()) || input;
    polled.push_back({socket->fd(), POLLIN, 0});
  }
  for (const WaitFd& each : fds) {
    polled.push_back({each.fd, POLLIN, 0});
  }
  const std::int64_t ns = input ? 0 : std::max<std::int64_t>(at_most.ns, 0);
  timespec timeout{};
  timeout.tv_sec = ns / 1'000'000'000;
  timeout.tv_nsec = ns % 1'000'000'000;
  if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) <= 0) {
    for (WaitFd& each : fds) {
      each.readable = false;
    }
    return input;
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    fds[i].readable = polled[sockets.size() + i].revents != 0;
    input = input || fds[i].readable;
  }
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (polled[i].revents != 0) {
      sockets[i]->stir();
      input = true;
    }
  }
  return input;
}

}  // namespace tutti::wire
