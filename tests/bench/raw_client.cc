// tutti-bench-raw: the floor. A closed loop of bare HTTP/1.1 exchanges on one thread and one epoll
// set, with nothing an engine needs beyond them. What the agent costs above this is its price.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/time.h"
#include "common/sys/limits.h"
#include "tests/bench/chat_body.h"
#include "tests/bench/process_cpu.h"
#include "tests/bench/raw_reply.h"

namespace tutti::bench {
namespace {

struct Settings {
  std::vector<std::string> urls;
  std::string body_file;
  std::string source;
  std::size_t body_bytes = 1024;
  std::size_t connections = 100;
  std::size_t opens_per_turn = 64;
  double seconds = 5;
  double warmup = 1;
  std::uint64_t requests = 0;
  bool stream = false;
  bool stamps = false;
  bool kernel_stamps = false;
};

struct Counters {
  std::uint64_t requests = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t turns = 0;
  std::uint64_t http_errors = 0;  // status other than 200
  std::uint64_t connect_errors = 0;
  std::uint64_t broken = 0;  // closed or unreadable in mid-answer
  std::uint64_t reconnects = 0;
};

Counters operator-(const Counters& a, const Counters& b) {
  return {
      a.requests - b.requests, a.chunks - b.chunks,           a.bytes - b.bytes,
      a.turns - b.turns,       a.http_errors - b.http_errors, a.connect_errors - b.connect_errors,
      a.broken - b.broken,     a.reconnects - b.reconnects};
}

struct Target {
  sockaddr_in address{};
  std::string request;
};

struct Connection {
  int fd = -1;
  bool connecting = false;
  std::size_t target = 0;
  std::size_t unsent_at = 0;  // the request's first byte not yet sent; npos: all sent
  ReplyScanner scanner;
};

std::string body_of(const Settings& settings) {
  if (!settings.body_file.empty()) {
    std::ifstream file(settings.body_file, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  return chat_body(settings.body_bytes, settings.stream);
}

bool parse_target(const std::string& url, const std::string& body, Target& out) {
  if (url.rfind("http://", 0) != 0) {
    return false;
  }
  const std::size_t slash = std::min(url.find('/', 7), url.size());
  const std::string authority = url.substr(7, slash - 7);
  const std::string path = slash < url.size() ? url.substr(slash) : "/v1/chat/completions";
  const std::size_t colon = authority.find(':');
  unsigned long port = 80;
  if (colon != std::string::npos) {
    port = std::strtoul(authority.c_str() + colon + 1, nullptr, 10);
  }
  out.address.sin_family = AF_INET;
  out.address.sin_port = htons(static_cast<std::uint16_t>(port));
  const std::string host = authority.substr(0, colon);
  if (port == 0 || port > 65535 || ::inet_pton(AF_INET, host.c_str(), &out.address.sin_addr) != 1) {
    return false;
  }
  out.request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n\r\n{}",
      path, authority, body.size(), body);
  return true;
}

class Client {
 public:
  Client(const Settings& settings, std::vector<Target> targets)
      : settings_(settings), targets_(std::move(targets)), connections_(settings.connections) {}

  int run();

 private:
  void open_connection(std::size_t index);
  void close_connection(std::size_t index, bool broken);
  void watch(std::size_t index, std::uint32_t events, int operation) const;
  void send_request(std::size_t index);
  ssize_t receive_stamped(int fd);
  void on_event(std::size_t index, std::uint32_t events);
  void on_reply_bytes(std::size_t index, std::string_view bytes);
  void turn();
  std::string report(double seconds, double cpu, const Counters& counts);
  std::int64_t now() const { return clock_.mono().ns; }

  const Settings& settings_;
  std::vector<Target> targets_;
  std::vector<Connection> connections_;
  base::SystemClock clock_;
  int epoll_ = -1;
  std::size_t opened_ = 0;
  std::size_t answering_ = 0;  // connections whose current answer has begun
  std::size_t answering_max_ = 0;
  Counters counters_;
  std::array<char, 64 << 10> buffer_{};
  std::vector<std::int64_t> stamps_;  // of this read
  std::vector<std::int64_t> lags_ns_;
};

void Client::watch(std::size_t index, std::uint32_t events, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = index;
  ::epoll_ctl(epoll_, operation, connections_[index].fd, &event);
}

void Client::open_connection(std::size_t index) {
  Connection& c = connections_[index];
  c.target = index % targets_.size();
  c.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c.fd < 0) {
    ++counters_.connect_errors;
    return;
  }
  const int on = 1;
  ::setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (settings_.kernel_stamps) {
    ::setsockopt(c.fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    ::setsockopt(c.fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on);
  }
  if (!settings_.source.empty()) {
    ::setsockopt(c.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    sockaddr_in from{};
    from.sin_family = AF_INET;
    ::inet_pton(AF_INET, settings_.source.c_str(), &from.sin_addr);
    ::bind(c.fd, reinterpret_cast<sockaddr*>(&from), sizeof from);
  }
  const sockaddr_in& to = targets_[c.target].address;
  const int rc = ::connect(c.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  if (rc != 0 && errno != EINPROGRESS) {
    ++counters_.connect_errors;
    ::close(c.fd);
    c.fd = -1;
    return;
  }
  c.connecting = true;
  c.unsent_at = 0;
  c.scanner.reset();
  c.scanner.collect_stamps(settings_.stamps ? &stamps_ : nullptr);
  watch(index, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

void Client::close_connection(std::size_t index, bool broken) {
  Connection& c = connections_[index];
  if (c.connecting) {
    ++counters_.connect_errors;
  } else if (broken) {
    ++counters_.broken;
  }
  if (!c.scanner.is_untouched() && !c.scanner.is_done()) {
    --answering_;
  }
  const bool again = !c.connecting;
  ::close(c.fd);
  c.fd = -1;
  c.connecting = false;
  if (again) {
    ++counters_.reconnects;
    open_connection(index);
  }
}

void Client::send_request(std::size_t index) {
  Connection& c = connections_[index];
  const std::string& request = targets_[c.target].request;
  const ssize_t put =
      ::send(c.fd, request.data() + c.unsent_at, request.size() - c.unsent_at, MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN) {
    close_connection(index, true);
    return;
  }
  const bool was_partial = c.unsent_at != 0;
  c.unsent_at += put > 0 ? static_cast<std::size_t>(put) : 0;
  if (c.unsent_at < request.size()) {
    watch(index, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  } else if (was_partial) {
    watch(index, EPOLLIN, EPOLL_CTL_MOD);
  }
}

void Client::on_reply_bytes(std::size_t index, std::string_view bytes) {
  Connection& c = connections_[index];
  const bool begins = c.scanner.is_untouched();
  const std::size_t taken = c.scanner.feed(bytes);
  counters_.bytes += bytes.size();
  counters_.chunks += c.scanner.take_events();
  if (settings_.stamps && !stamps_.empty()) {
    const std::int64_t at = now();
    for (const std::int64_t stamp : stamps_) {
      lags_ns_.push_back(at - stamp);
    }
    stamps_.clear();
  }
  if (c.scanner.is_bad()) {
    close_connection(index, true);
    return;
  }
  if (begins) {
    answering_max_ = std::max(answering_max_, ++answering_);
  }
  if (!c.scanner.is_done()) {
    return;
  }
  --answering_;
  ++counters_.requests;
  counters_.http_errors += c.scanner.status() != 200 ? 1U : 0U;
  if (taken != bytes.size() || !c.scanner.keeps_connection()) {
    close_connection(index, taken != bytes.size());
    return;
  }
  c.scanner.reset();
  c.unsent_at = 0;
  send_request(index);
}

// What `direct` asks the kernel for with each read: when the bytes came, and how many are left.
ssize_t Client::receive_stamped(int fd) {
  iovec room{buffer_.data(), buffer_.size()};
  alignas(cmsghdr) std::array<char, 128> beside{};
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  message.msg_control = beside.data();
  message.msg_controllen = beside.size();
  return ::recvmsg(fd, &message, 0);
}

void Client::on_event(std::size_t index, std::uint32_t events) {
  Connection& c = connections_[index];
  if (c.fd < 0) {
    return;
  }
  if (c.connecting) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      close_connection(index, true);
      return;
    }
    c.connecting = false;
    watch(index, EPOLLIN, EPOLL_CTL_MOD);
    send_request(index);
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    send_request(index);
    return;
  }
  const ssize_t got = settings_.kernel_stamps ? receive_stamped(c.fd)
                                              : ::recv(c.fd, buffer_.data(), buffer_.size(), 0);
  if (got > 0) {
    on_reply_bytes(index, {buffer_.data(), static_cast<std::size_t>(got)});
  } else if (got == 0 || errno != EAGAIN) {
    close_connection(index, true);
  }
}

void Client::turn() {
  for (std::size_t i = 0; i < settings_.opens_per_turn && opened_ < connections_.size(); ++i) {
    open_connection(opened_++);
  }
  std::array<epoll_event, 512> events;
  const int wait_ms = opened_ < connections_.size() ? 0 : 100;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms);
  ++counters_.turns;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    on_event(static_cast<std::size_t>(event.data.u64), event.events);
  }
}

std::string Client::report(double seconds, double cpu, const Counters& n) {
  const auto per = [](double what, std::uint64_t of) {
    return of == 0 ? 0.0 : what / static_cast<double>(of);
  };
  std::string out = fmt::format(
      "{{\"client\":\"raw\",\"connections\":{},\"stream\":{},\"seconds\":{:.3f},\"requests\":{},"
      "\"chunks\":{},\"bytes\":{},\"requests_per_s\":{:.1f},\"chunks_per_s\":{:.1f},"
      "\"cpu_s\":{:.4f},\"cpu_us_per_request\":{:.3f},\"cpu_us_per_chunk\":{:.3f},"
      "\"turns\":{},\"answering_max\":{},\"errors\":{{\"http\":{},\"connect\":{},\"broken\":{}}},"
      "\"reconnects\":{}",
      connections_.size(), settings_.stream, seconds, n.requests, n.chunks, n.bytes,
      static_cast<double>(n.requests) / seconds, static_cast<double>(n.chunks) / seconds, cpu,
      per(cpu * 1e6, n.requests), per(cpu * 1e6, n.chunks), n.turns, answering_max_, n.http_errors,
      n.connect_errors, n.broken, n.reconnects);
  if (!lags_ns_.empty()) {
    std::sort(lags_ns_.begin(), lags_ns_.end());
    const auto at = [&](double q) {
      const auto i = static_cast<std::size_t>(q * static_cast<double>(lags_ns_.size() - 1));
      return static_cast<double>(lags_ns_[i]) / 1e3;
    };
    out += fmt::format(
        ",\"stamp_lag_us\":{{\"count\":{},\"min\":{:.1f},\"p50\":{:.1f},\"p99\":{:.1f},"
        "\"p999\":{:.1f},\"max\":{:.1f}}}",
        lags_ns_.size(), at(0), at(0.5), at(0.99), at(0.999), at(1));
  }
  return out + "}";
}

int Client::run() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  const std::int64_t start = now();
  const auto after = [&](double s) { return start + base::Duration::from_seconds(s).ns; };
  // The warm-up: connections and first answers, for at least as long as asked.
  while (now() < after(settings_.warmup) || opened_ < connections_.size()) {
    turn();
  }
  lags_ns_.clear();
  const Counters counts_before = counters_;
  const double cpu_before = process_cpu_s();
  const std::int64_t from = now();
  const std::int64_t until = from + base::Duration::from_seconds(settings_.seconds).ns;
  while (settings_.requests != 0
             ? counters_.requests - counts_before.requests < settings_.requests && now() < until
             : now() < until) {
    turn();
  }
  const double seconds = base::Duration::nanos(now() - from).to_seconds();
  const Counters counts = counters_ - counts_before;
  fmt::print("{}\n", report(seconds, process_cpu_s() - cpu_before, counts));
  for (const Connection& c : connections_) {
    if (c.fd >= 0) {
      ::close(c.fd);
    }
  }
  ::close(epoll_);
  const bool clean = counts.requests + counts.chunks > 0 && counters_.http_errors == 0 &&
                     counters_.connect_errors == 0 && counters_.broken == 0;
  return clean ? 0 : 4;
}

int run_raw(const Settings& settings) {
  const std::string body = body_of(settings);
  std::vector<Target> targets;
  for (const std::string& url : settings.urls) {
    Target target;
    if (body.empty() || !parse_target(url, body, target)) {
      fmt::print(stderr,
                 "tutti-bench-raw: --url: \"{}\": write http://IPV4:PORT[/path]; and --body-file "
                 "must name a file that is not empty\n",
                 url);
      return 1;
    }
    targets.push_back(std::move(target));
  }
  sys::raise_open_files_limit();
  return Client(settings, std::move(targets)).run();
}

}  // namespace
}  // namespace tutti::bench

int main(int argc, char** argv) {
  tutti::bench::Settings s;
  CLI::App app{"tutti-bench-raw: a closed loop of bare HTTP/1.1 exchanges; prints one JSON line"};
  app.add_option("--url", s.urls, "http://IPV4:PORT[/path], repeatable; connections alternate")
      ->required();
  app.add_option("--connections,-c", s.connections, "exchanges in flight")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seconds", s.seconds, "length of the measured window")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--requests", s.requests, "end the window after so many answers, if sooner");
  app.add_option("--warmup", s.warmup, "seconds before the window")->check(CLI::Range(0.0, 1e6));
  app.add_option("--body-file", s.body_file, "JSON body to send")->check(CLI::ExistingFile);
  app.add_option("--body-bytes", s.body_bytes, "size of the generated chat body (default 1024)")
      ->check(CLI::Range(64, 1 << 26));
  app.add_flag("--stream", s.stream, "the generated body asks for a stream");
  app.add_flag("--stamps", s.stamps, "read tutti_sent_ns of each event and report the lag");
  app.add_flag("--kernel-stamps", s.kernel_stamps,
               "have the kernel say with each read when its bytes came, as direct does");
  app.add_option("--source", s.source, "IPv4 address to connect from");
  app.add_option("--opens-per-turn", s.opens_per_turn, "connections opened per loop turn")
      ->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  return tutti::bench::run_raw(s);
}
