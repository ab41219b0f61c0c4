// tutti-bench-engine: the agent's engine in a closed loop, or with Poisson arrivals, as the session
// drives it: real workers, full records, polled when the bell rings and dropped after counting.
// Prints one JSON line with the fields of tutti-bench-raw and those only an engine has.

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "agent/drive/engine.h"
#include "common/base/time.h"
#include "common/data/body_set.h"
#include "common/plan/arrivals.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"
#include "tests/bench/chat_body.h"
#include "tests/bench/engine_tally.h"

namespace tutti::bench {
namespace {

using base::Duration;
using base::Instant;

constexpr int kClean = 0;
constexpr int kBadCall = 1;
constexpr int kUnclean = 4;

struct Settings {
  std::vector<std::string> urls;
  std::string transport = "multi";
  std::size_t body_bytes = 1024;
  std::uint32_t slots = 100;
  std::uint32_t workers = 1;
  std::uint32_t connect_rate = 3000;
  double seconds = 5;
  double warmup = 1;
  double give_up = 120;
  std::uint64_t requests = 0;
  double qps = 0;  // above 0: arrivals instead of a closed loop
  bool stream = false;
  bool stamps = false;
};

std::int64_t read_clock(clockid_t id) {
  timespec t{};
  return ::clock_gettime(id, &t) == 0 ? std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec : 0;
}

// CPU of the engine's I/O threads, found by the name they give themselves. The clock id of a thread
// is made from its number as the kernel's headers say (clock_getcpuclockid's sibling for threads).
std::int64_t io_threads_cpu_ns() {
  std::int64_t sum = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* entry = tasks != nullptr ? ::readdir(tasks) : nullptr) {
    const long tid = std::strtol(entry->d_name, nullptr, 10);
    std::FILE* file = std::fopen(fmt::format("/proc/self/task/{}/comm", tid).c_str(), "re");
    char name[32] = "";
    if (file != nullptr) {
      const bool read = std::fgets(name, sizeof name, file) != nullptr;
      std::fclose(file);
      if (read && std::strncmp(name, "tutti-io-", 9) == 0) {
        sum += read_clock(static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6U));
      }
    }
  }
  if (tasks != nullptr) {
    ::closedir(tasks);
  }
  return sum;
}

// What two moments are told apart by.
struct Moment {
  Instant at{};
  std::int64_t cpu_ns = 0;
  std::int64_t io_cpu_ns = 0;
  std::uint64_t done = 0;
  std::uint64_t tokens = 0;
};

class Load {
 public:
  explicit Load(const Settings& settings) : settings_(settings), tally_(settings.stamps) {
    if (settings.qps > 0) {
      arrivals_.emplace(settings.qps, 42);
    }
  }

  int run();

 private:
  std::string set_up();
  std::string warm();
  void turn(Instant until);
  void top_up();
  Moment moment();
  bool warmed_up(Instant armed_at);
  bool measure();
  std::string report() const;
  Instant give_up_at() const { return started_ + Duration::from_seconds(settings_.give_up); }

  const Settings& settings_;
  base::SystemClock clock_;
  data::BodySet bodies_;
  std::unique_ptr<drive::Engine> engine_;
  std::vector<drive::EngineEvent> events_;
  std::vector<base::IssueCommand> commands_;
  std::optional<plan::PoissonArrivals> arrivals_;
  std::optional<drive::EngineWarmed> warmed_;
  std::size_t queue_max_ = 0;
  base::Seq issued_ = 0;
  Instant started_{};
  std::uint64_t rss_before_ = 0;
  std::uint64_t rss_ = 0;
  wire::Health health_{};  // of the window
  Moment from_;
  Moment to_;
  mutable Tally tally_;
};

wire::TargetSpec target_of(const Settings& settings) {
  wire::TargetSpec target;
  for (const auto& url : settings.urls) {
    const bool bare = url.find('/', url.find("://") + 3) == std::string::npos;
    target.urls.push_back(bare ? url + "/v1/chat/completions" : url);
  }
  target.streaming = settings.stream;
  target.stamp_every_chunk = settings.stamps;
  target.way = settings.transport == "direct" ? base::Way::kDirect : base::Way::kMulti;
  target.headers = {{"Content-Type", "application/json"},
                    {"Accept", settings.stream ? "text/event-stream" : "application/json"}};
  target.connections_warm = settings.slots;
  target.connect_rate_max = settings.connect_rate;
  return target;
}

// One row in a file that has no name any more once it is open.
base::Result<data::BodySet> one_body(const std::string& body) {
  char path[] = "/tmp/tutti-bench-XXXXXX";
  const int fd = ::mkstemp(path);
  if (fd < 0) {
    return base::fail(base::ExitCode::kSetup, "no temporary file can be made in /tmp");
  }
  ::close(fd);
  auto writer = data::BodySetWriter::create(path);
  if (!writer) {
    return tl::unexpected(writer.error());
  }
  if (auto status = writer->add(body, -1); !status) {
    return tl::unexpected(status.error());
  }
  if (auto info = writer->finish(); !info) {
    return tl::unexpected(info.error());
  }
  auto set = data::BodySet::open(path);
  ::unlink(path);
  return set;
}

std::string Load::set_up() {
  sys::raise_open_files_limit();
  auto bodies = one_body(chat_body(settings_.body_bytes, settings_.stream));
  if (!bodies) {
    return bodies.error().message;
  }
  bodies_ = std::move(*bodies);
  drive::EngineConfig config;
  config.target = target_of(settings_);
  config.bodies = &bodies_;
  config.workers = settings_.workers;
  config.slots = settings_.slots;
  config.queue_max = queue_max_ = std::max<std::size_t>(4096, settings_.slots);
  auto engine = drive::Engine::start(std::move(config), clock_);
  if (!engine) {
    return engine.error().message;
  }
  engine_ = std::move(*engine);
  rss_before_ = sys::resident_bytes();
  return warm();
}

// Opens every connection before the first query, as a run does before its first phase.
std::string Load::warm() {
  engine_->warm();
  while (!warmed_) {
    turn(clock_.mono() + Duration::millis(100));
    if (clock_.mono() > give_up_at()) {
      return "the connections did not open in time; raise --give-up or --connect-rate";
    }
  }
  for (std::size_t i = 0; i < warmed_->frontends.size(); ++i) {
    if (!warmed_->frontends[i].reachable) {
      return fmt::format("--url {}: {}", settings_.urls[i], warmed_->frontends[i].error);
    }
  }
  return {};
}

// Waits for results or for `until`, takes what came, keeps the queue at least half full.
void Load::turn(Instant until) {
  const std::int64_t wait_ms = ((until - clock_.mono()).ns + 999'999) / 1'000'000;
  pollfd waiting{engine_->wake_fd(), POLLIN, 0};
  ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(wait_ms, 0, 1000)));
  events_.clear();
  engine_->poll(events_);
  for (auto& event : events_) {
    if (auto* records = std::get_if<drive::EngineRecords>(&event)) {
      for (const auto& record : records->records) {
        tally_.take(record);
      }
    } else if (auto* warmed = std::get_if<drive::EngineWarmed>(&event)) {
      warmed_ = std::move(*warmed);
    }
  }
}

void Load::top_up() {
  std::size_t room = engine_->room(0);
  if (room < queue_max_ / 2) {
    return;
  }
  if (settings_.requests != 0) {
    room = static_cast<std::size_t>(std::min<std::uint64_t>(room, settings_.requests - issued_));
  }
  commands_.clear();
  for (std::size_t i = 0; i < room; ++i) {
    Duration due{};
    if (arrivals_) {
      arrivals_->next_gap_ns();
      due = arrivals_->due_offset();
    }
    commands_.push_back({issued_ + i, 0, due, false, 0});
  }
  issued_ += engine_->issue(0, commands_);
}

Moment Load::moment() {
  Moment m;
  m.at = clock_.mono();
  const wire::Progress progress = engine_->progress();
  health_ = engine_->health(m.at);
  m.done = progress.done;
  m.tokens = progress.output_tokens;
  m.cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  m.io_cpu_ns = io_threads_cpu_ns();
  return m;
}

// Every slot has begun, and, where answers are short, has ended one.
bool Load::warmed_up(Instant armed_at) {
  if (clock_.mono() < armed_at + Duration::from_seconds(settings_.warmup)) {
    return false;
  }
  const wire::Progress progress = engine_->progress();
  if (arrivals_) {
    return progress.done > 0;
  }
  return (settings_.stream ? progress.started : progress.done) >= settings_.slots;
}

// False: it took too long.
bool Load::measure() {
  const Instant armed_at = clock_.mono();
  engine_->arm(0, arrivals_ ? base::Pacing::kTimed : base::Pacing::kClosedLoop, settings_.slots,
               armed_at);
  top_up();
  if (settings_.requests == 0) {
    while (!warmed_up(armed_at)) {
      turn(clock_.mono() + Duration::millis(20));
      top_up();
      if (clock_.mono() > give_up_at()) {
        return false;
      }
    }
  }
  from_ = moment();
  tally_.begin_window(settings_.requests == 0 ? from_.at : armed_at);
  const Instant until =
      settings_.requests == 0 ? from_.at + Duration::from_seconds(settings_.seconds) : give_up_at();
  while (clock_.mono() < until &&
         (settings_.requests == 0 || issued_ < settings_.requests || engine_->outstanding(0) > 0)) {
    turn(until);
    top_up();
  }
  to_ = moment();
  rss_ = sys::resident_bytes();
  if (settings_.stamps && settings_.requests == 0) {
    // A record tells its stamps when it ends: without the streams that outlive the window, long
    // ones would be missing from it.
    tally_.end_window(to_.at);
    engine_->recall(0, 1);
    while (engine_->outstanding(0) > 0 && clock_.mono() < give_up_at()) {
      turn(give_up_at());
    }
  }
  return (settings_.requests == 0 && !settings_.stamps) || engine_->outstanding(0) == 0;
}

std::string json_of(const char* name, const Spread& s) {
  return fmt::format(
      ",\"{}\":{{\"count\":{},\"min\":{:.1f},\"p50\":{:.1f},\"p99\":{:.1f},\"p999\":{:.1f},"
      "\"max\":{:.1f}}}",
      name, s.count, s.min_us, s.p50_us, s.p99_us, s.p999_us, s.max_us);
}

std::string Load::report() const {
  const double seconds = (to_.at - from_.at).to_seconds();
  const double cpu_us = static_cast<double>(to_.cpu_ns - from_.cpu_ns) / 1e3;
  const double io_us = static_cast<double>(to_.io_cpu_ns - from_.io_cpu_ns) / 1e3;
  // Of a whole run the records tell exactly; of a window the live counters, which see streams that
  // have not ended.
  const bool whole = settings_.requests != 0;
  const std::uint64_t requests = whole ? tally_.records : to_.done - from_.done;
  const std::uint64_t chunks = !settings_.stream ? 0
                               : whole           ? tally_.chunks
                                                 : to_.tokens - from_.tokens;
  const auto per = [](double what, std::uint64_t of) {
    return of == 0 ? 0.0 : what / static_cast<double>(of);
  };
  std::string out = fmt::format(
      "{{\"client\":\"tutti\",\"transport\":\"{}\",\"connections\":{},\"workers\":{},"
      "\"stream\":{},\"seconds\":{:.3f},\"requests\":{},\"chunks\":{},\"requests_per_s\":{:.1f},"
      "\"chunks_per_s\":{:.1f},\"cpu_s\":{:.4f},\"cpu_us_per_request\":{:.3f},"
      "\"cpu_us_per_chunk\":{:.3f},\"worker_cpu_s\":{:.4f},\"worker_cpu_us_per_request\":{:.3f},"
      "\"worker_cpu_us_per_chunk\":{:.3f}",
      settings_.transport, settings_.slots, engine_->workers(), settings_.stream, seconds, requests,
      chunks, static_cast<double>(requests) / seconds, static_cast<double>(chunks) / seconds,
      cpu_us / 1e6, per(cpu_us, requests), per(cpu_us, chunks), io_us / 1e6, per(io_us, requests),
      per(io_us, chunks));
  const std::uint64_t grown = rss_ > rss_before_ ? rss_ - rss_before_ : 0;
  out += fmt::format(
      ",\"rss_bytes\":{},\"rss_bytes_per_slot\":{},\"turn_max_us\":{},"
      "\"read_lag_p50_us\":{:.1f},\"read_lag_p99_us\":{:.1f},\"reads_unstamped\":{},"
      "\"failed\":{},\"records_lost\":{}",
      rss_, grown / settings_.slots, health_.turn_max.ns / 1000,
      static_cast<double>(health_.read_lag_p50.ns) / 1e3,
      static_cast<double>(health_.read_lag_p99.ns) / 1e3, health_.reads_unstamped, tally_.failed,
      engine_->records_lost());
  // sent − due: of a closed loop, how long a freed slot stood empty; of arrivals, how late they
  // were.
  out += json_of(arrivals_ ? "late_us" : "refill_us", spread_of(tally_.refill_ns));
  if (settings_.stamps) {
    out += fmt::format(",\"unpaired\":{}", tally_.unpaired);
    out += json_of("first_stamp_us", spread_of(tally_.first_lag_ns));
    out += json_of("later_stamp_us", spread_of(tally_.later_lag_ns));
  }
  return out + "}";
}

int Load::run() {
  started_ = clock_.mono();
  if (const std::string problem = set_up(); !problem.empty()) {
    fmt::print(stderr, "tutti-bench-engine: {}\n", problem);
    return kBadCall;
  }
  const bool in_time = measure();
  if (!in_time) {
    fmt::print(stderr, "tutti-bench-engine: not done after --give-up {} s\n", settings_.give_up);
  }
  fmt::print("{}\n", report());
  if (tally_.failed > 0) {
    fmt::print(stderr, "tutti-bench-engine: {} failed, the first: {}\n", tally_.failed,
               tally_.first_error);
  }
  const bool clean = in_time && tally_.records + (to_.tokens - from_.tokens) > 0 &&
                     tally_.failed == 0 && tally_.unpaired == 0 && engine_->records_lost() == 0;
  engine_->stop();
  return clean ? kClean : kUnclean;
}

}  // namespace
}  // namespace tutti::bench

int main(int argc, char** argv) {
  tutti::bench::Settings s;
  CLI::App app{
      "tutti-bench-engine: the agent's engine in a closed loop; prints one JSON line.\n"
      "Exit codes: 0 clean, 1 cannot start, 4 a query failed, a record was lost or time ran out"};
  app.add_option("--url", s.urls, "http://HOST:PORT[/path], repeatable; one frontend each")
      ->required();
  app.add_option("--transport", s.transport, "the way onto the wire (default multi)")
      ->check(CLI::IsMember({"direct", "multi"}));
  app.add_option("--slots,-c", s.slots, "queries in flight (default 100)")
      ->check(CLI::Range(1U, 1'000'000U));
  app.add_option("--workers", s.workers, "I/O threads (default 1)")->check(CLI::Range(1U, 1024U));
  app.add_option("--seconds", s.seconds, "length of the measured window (default 5)")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--requests", s.requests,
                 "measure exactly so many whole queries instead of a window (for callgrind)");
  app.add_option("--qps", s.qps, "Poisson arrivals of so many a second instead of a closed loop")
      ->check(CLI::Range(0.001, 1e7));
  app.add_option("--warmup", s.warmup, "seconds before the window, at least (default 1)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--body-bytes", s.body_bytes, "size of the chat body (default 1024)")
      ->check(CLI::Range(64, 1 << 26));
  app.add_flag("--stream", s.stream, "ask for a stream");
  app.add_flag("--stamps", s.stamps,
               "stamp every chunk and compare with the server's stamps (tutti-mock --text stamp)");
  app.add_option("--connect-rate", s.connect_rate, "connections opened per second (default 3000)")
      ->check(CLI::Range(1U, 1'000'000U));
  app.add_option("--give-up", s.give_up, "seconds after which all of it ends (default 120)")
      ->check(CLI::Range(1.0, 1e6));
  CLI11_PARSE(app, argc, argv);
  if (s.qps > 0 && (s.stamps || s.requests > 0)) {
    fmt::print(stderr, "tutti-bench-engine: --qps: goes with neither --stamps nor --requests\n");
    return 1;
  }
  if (s.stamps && !s.stream) {
    fmt::print(stderr, "tutti-bench-engine: --stamps: only a stream has them; add --stream\n");
    return 1;
  }
  return tutti::bench::Load(s).run();
}
