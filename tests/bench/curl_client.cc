// tutti-bench-curl: the floor of whatever goes through libcurl. A closed loop of bare POSTs over
// curl multi sets and one epoll set, on one thread: no records, no budgets, events counted and not
// read. What `multi` costs above this is the engine's price, what this costs above the raw client
// is libcurl's.

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/time.h"
#include "common/sys/limits.h"
#include "tests/bench/chat_body.h"
#include "tests/bench/process_cpu.h"

namespace tutti::bench {
namespace {

// One multi set costs time linear in its connections, so nobody would use one for thousands.
constexpr std::size_t kPerSet = 256;
constexpr std::size_t kOpensPerTurn = 64;

struct Settings {
  std::string url;
  std::size_t body_bytes = 1024;
  std::size_t connections = 100;
  double seconds = 5;
  double warmup = 1;
  std::uint64_t requests = 0;
  bool stream = false;
};

struct Counters {
  std::uint64_t requests = 0;
  std::uint64_t chunks = 0;
  std::uint64_t errors = 0;  // a transfer that failed, or a status other than 200
};

class Client {
 public:
  explicit Client(const Settings& settings);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int run();

 private:
  struct Set {
    Client* owner = nullptr;
    CURLM* multi = nullptr;
    std::int64_t wake_at = -1;  // -1: curl waits for sockets alone
  };

  static int on_wanted(CURL*, curl_socket_t fd, int what, void* set, void*);
  static int on_timer(CURLM*, long timeout_ms, void* set);
  static std::size_t on_bytes(char* data, std::size_t, std::size_t bytes, void* self);

  void add_one();
  void deliver(Set& set);
  void turn();
  void act(Set& set, int fd, int bits) const;
  std::int64_t now() const { return clock_.mono().ns; }

  const Settings& settings_;
  std::string body_;
  curl_slist* headers_ = nullptr;
  std::vector<std::unique_ptr<Set>> sets_;
  std::vector<CURL*> handles_;
  std::vector<Set*> set_of_;  // by descriptor
  base::SystemClock clock_;
  int epoll_ = -1;
  Counters counters_;
};

Client::Client(const Settings& settings)
    : settings_(settings),
      body_(chat_body(settings.body_bytes, settings.stream)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  // The header that the raw client sends too; without the last two curl adds its own.
  for (const char* line : {"Content-Type: application/json", "Accept:", "Expect:"}) {
    headers_ = curl_slist_append(headers_, line);
  }
  const std::size_t sets = (settings.connections + kPerSet - 1) / kPerSet;
  for (std::size_t i = 0; i < sets; ++i) {
    Set& set = *sets_.emplace_back(std::make_unique<Set>());
    set.owner = this;
    set.multi = curl_multi_init();
    curl_multi_setopt(set.multi, CURLMOPT_SOCKETFUNCTION, on_wanted);
    curl_multi_setopt(set.multi, CURLMOPT_SOCKETDATA, &set);
    curl_multi_setopt(set.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(set.multi, CURLMOPT_TIMERDATA, &set);
    curl_multi_setopt(set.multi, CURLMOPT_MAXCONNECTS, static_cast<long>(kPerSet));
  }
}

Client::~Client() {
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    curl_multi_remove_handle(sets_[i / kPerSet]->multi, handles_[i]);
    curl_easy_cleanup(handles_[i]);
  }
  for (auto& set : sets_) {
    curl_multi_cleanup(set->multi);
  }
  curl_slist_free_all(headers_);
  ::close(epoll_);
}

int Client::on_wanted(CURL*, curl_socket_t fd, int what, void* set, void*) {
  Client& self = *static_cast<Set*>(set)->owner;
  const auto index = static_cast<std::size_t>(fd);
  if (index >= self.set_of_.size()) {
    self.set_of_.resize(std::max(index + 1, self.set_of_.size() * 2), nullptr);
  }
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(self.epoll_, EPOLL_CTL_DEL, fd, nullptr);
    self.set_of_[index] = nullptr;
    return 0;
  }
  epoll_event event{};
  event.data.fd = fd;
  event.events |= (what & CURL_POLL_IN) != 0 ? static_cast<std::uint32_t>(EPOLLIN) : 0U;
  event.events |= (what & CURL_POLL_OUT) != 0 ? static_cast<std::uint32_t>(EPOLLOUT) : 0U;
  const bool known = self.set_of_[index] != nullptr;
  ::epoll_ctl(self.epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
  self.set_of_[index] = static_cast<Set*>(set);
  return 0;
}

int Client::on_timer(CURLM*, long timeout_ms, void* set) {
  auto& self = *static_cast<Set*>(set);
  self.wake_at = timeout_ms < 0 ? -1 : self.owner->now() + timeout_ms * 1'000'000;
  return 0;
}

// An event begins a line with "data: {", and the mock sends each in one piece.
std::size_t Client::on_bytes(char* data, std::size_t, std::size_t bytes, void* self) {
  auto& client = *static_cast<Client*>(self);
  if (client.settings_.stream) {
    const std::string_view text(data, bytes);
    constexpr std::string_view kEvent = "data: {";
    for (std::size_t at = 0; (at = text.find(kEvent, at)) != std::string_view::npos;) {
      ++client.counters_.chunks;
      at += kEvent.size();
    }
  }
  return bytes;
}

void Client::add_one() {
  CURL* easy = curl_easy_init();
  curl_easy_setopt(easy, CURLOPT_URL, settings_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body_.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body_.c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_multi_add_handle(sets_[handles_.size() / kPerSet]->multi, easy);
  handles_.push_back(easy);
}

void Client::act(Set& set, int fd, int bits) const {
  int running = 0;
  if (fd == CURL_SOCKET_TIMEOUT) {
    set.wake_at = -1;
  }
  curl_multi_socket_action(set.multi, fd, bits, &running);
}

void Client::deliver(Set& set) {
  int queued = 0;
  while (const CURLMsg* message = curl_multi_info_read(set.multi, &queued)) {
    CURL* easy = message->easy_handle;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    ++counters_.requests;
    counters_.errors += message->data.result != CURLE_OK || status != 200 ? 1U : 0U;
    curl_multi_remove_handle(set.multi, easy);
    curl_multi_add_handle(set.multi, easy);
  }
}

void Client::turn() {
  for (std::size_t i = 0; i < kOpensPerTurn && handles_.size() < settings_.connections; ++i) {
    add_one();
  }
  std::array<epoll_event, 512> events;
  const bool due = std::any_of(sets_.begin(), sets_.end(), [at = now()](const auto& set) {
    return set->wake_at >= 0 && set->wake_at <= at;
  });
  const int wait_ms = due || handles_.size() < settings_.connections ? 0 : 10;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    int bits = (event.events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0;
    bits |= (event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0;
    bits |= (event.events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0;
    if (Set* const set = set_of_[static_cast<std::size_t>(event.data.fd)]) {
      act(*set, event.data.fd, bits);
    }
  }
  for (auto& set : sets_) {
    deliver(*set);
    if (set->wake_at >= 0 && set->wake_at <= now()) {
      act(*set, CURL_SOCKET_TIMEOUT, 0);
    }
  }
}

int Client::run() {
  const std::int64_t start = now();
  const auto after = [&](double s) { return start + base::Duration::from_seconds(s).ns; };
  while (now() < after(settings_.warmup) || handles_.size() < settings_.connections) {
    turn();
  }
  const Counters before = counters_;
  const double cpu_before = process_cpu_s();
  const std::int64_t from = now();
  const std::int64_t until = from + base::Duration::from_seconds(settings_.seconds).ns;
  while (now() < until &&
         (settings_.requests == 0 || counters_.requests - before.requests < settings_.requests)) {
    turn();
  }
  const double seconds = base::Duration::nanos(now() - from).to_seconds();
  const double cpu = process_cpu_s() - cpu_before;
  const std::uint64_t requests = counters_.requests - before.requests;
  const std::uint64_t chunks = counters_.chunks - before.chunks;
  const auto per = [cpu](std::uint64_t n) {
    return n == 0 ? 0.0 : cpu * 1e6 / static_cast<double>(n);
  };
  fmt::print(
      "{{\"client\":\"curl\",\"connections\":{},\"stream\":{},\"seconds\":{:.3f},\"requests\":{},"
      "\"chunks\":{},\"requests_per_s\":{:.1f},\"chunks_per_s\":{:.1f},\"cpu_s\":{:.4f},"
      "\"cpu_us_per_request\":{:.3f},\"cpu_us_per_chunk\":{:.3f},\"errors\":{}}}\n",
      settings_.connections, settings_.stream, seconds, requests, chunks,
      static_cast<double>(requests) / seconds, static_cast<double>(chunks) / seconds, cpu,
      per(requests), per(chunks), counters_.errors);
  return requests + chunks > 0 && counters_.errors == 0 ? 0 : 4;
}

}  // namespace
}  // namespace tutti::bench

int main(int argc, char** argv) {
  tutti::bench::Settings s;
  CLI::App app{"tutti-bench-curl: a closed loop of bare libcurl POSTs; prints one JSON line"};
  app.add_option("--url", s.url, "http://HOST:PORT, or with a path")->required();
  app.add_option("--connections,-c", s.connections, "exchanges in flight")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seconds", s.seconds, "length of the measured window")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--requests", s.requests, "end the window after so many answers, if sooner");
  app.add_option("--warmup", s.warmup, "seconds before the window")->check(CLI::Range(0.0, 1e6));
  app.add_option("--body-bytes", s.body_bytes, "size of the chat body (default 1024)")
      ->check(CLI::Range(64, 1 << 26));
  app.add_flag("--stream", s.stream, "the body asks for a stream");
  CLI11_PARSE(app, argc, argv);
  if (s.url.find('/', s.url.find("//") + 2) == std::string::npos) {
    s.url += "/v1/chat/completions";
  }
  tutti::sys::raise_open_files_limit();
  curl_global_init(CURL_GLOBAL_DEFAULT);
  return tutti::bench::Client(s).run();
}
