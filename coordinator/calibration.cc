#include "coordinator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/log.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"

namespace tutti {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;

// Steps are whole seconds, so that agents' intervals of health lie in the window and not across it.
constexpr Duration kSettle = Duration::seconds(1);
// Streams of the null server: 25 to 75 tokens, 20 ms apart, after 5 to 50 ms.
constexpr double kTokensMean = 50;
constexpr double kGapS = 0.02;
constexpr double kStreamS = 0.0275 + (kTokensMean - 1) * kGapS;
constexpr double kEventsPerStream = kTokensMean / kStreamS;  // per second
constexpr double kStampEventsMax = 10'000;                   // load under which stamps are compared
constexpr std::uint64_t kStreamsPerMock = 15'000;
constexpr std::uint64_t kFilesKept = 200;  // of an agent, beside its streams
constexpr double kStreamsMaxPerAgent = 18'000;

const char* way_name(base::Way way) {
  return way == base::Way::kDirect ? "direct" : way == base::Way::kMulti ? "multi" : "auto";
}

std::string stamp_row(const char* what, const StampError& e) {
  if (e.count == 0) {
    return fmt::format("  {:<26} no token in the window\n", what);
  }
  const auto us = [](Duration d) { return d.to_seconds() * 1e6; };
  return fmt::format("  {:<26} p50 {:.1f} µs, p99 {:.1f} µs, p99.9 {:.1f} µs (of {} tokens)\n",
                     what, us(e.p50), us(e.p99), us(e.p999), e.count);
}

// The load is far from what a thread can do, yet it was late: the cores went to somebody else.
bool was_disturbed(const StepSeen& seen) {
  return seen.failed == 0 && seen.lost == 0 &&
         seen.cpu_busiest < StepLimits{}.cpu_busiest_max / 2 && !shortfall(seen, {}).empty();
}

std::string load_average() {
  double value = 0;
  return getloadavg(&value, 1) == 1 ? fmt::format("{:.1f}", value) : "unknown";
}

}  // namespace

Calibration::Calibration(CalibrationRig rig, double duration_s)
    : rig_(std::move(rig)),
      duration_s_(duration_s),
      window_(Duration::seconds(duration_s < 100 ? 1 : 2)) {}

bool Calibration::serve(std::size_t processes, const std::vector<std::string>& flags) {
  if (auto status = server_.start(processes, flags, rig_.folder); !status) {
    base::log_error("calibrate", status.error().message);
    failure_ = status.error().code;
    return false;
  }
  return true;
}

bool Calibration::step(const StepLoad& load, StepResult& out) {
  auto result = run_step(rig_, load);
  if (!result) {
    base::log_error("calibrate", result.error().message);
    failure_ = result.error().code;
    return false;
  }
  out = std::move(*result);
  queries_ += out.seen.queries;
  failed_ += out.seen.failed;
  if (out.interrupted) {
    base::log_warning("calibrate", "interrupted: nothing is concluded");
    failure_ = ExitCode::kInterrupted;
    return false;
  }
  if (!out.broke.empty()) {
    base::log_error("calibrate", "a run did not go through: " + out.broke);
    failure_ = ExitCode::kExecution;
    return false;
  }
  return true;
}

template <class LoadOf>
bool Calibration::search(const char* what, LoadSearch& search, Instant until, LoadOf load_of,
                         Finding& out) {
  Duration longest{};
  bool in_time = true;
  while (const auto load = search.next()) {
    const Instant began = now();
    if (longest.ns > 0 && began + longest > until) {
      in_time = false;
      break;
    }
    StepResult result;
    if (!step(load_of(*load), result)) {
      return false;
    }
    longest = std::max(longest, now() - began);
    if (was_disturbed(result.seen) && now() < until && !step(load_of(*load), result)) {
      return false;  // once may be an accident, so it had a second chance
    }
    const std::string why = shortfall(result.seen, StepLimits{});
    base::log_info("calibrate",
                   fmt::format("{} {:.0f}: {}", what, *load,
                               why.empty() ? fmt::format("holds (busiest thread {:.2f})",
                                                         result.seen.cpu_busiest)
                                           : why));
    if (!why.empty()) {
      out.above = fmt::format("at {:.0f}: {}", *load, why);
    }
    if (search.best() == 0 && was_disturbed(result.seen)) {
      out.above += fmt::format(
          "; with its busiest thread at {:.2f} of a core that is the work of others on this host "
          "(load average {}): calibrate when it is idle",
          result.seen.cpu_busiest, load_average());
      break;
    }
    search.tell(why.empty(), result.seen.cpu_busiest / StepLimits{}.cpu_busiest_max);
  }
  out.best = search.best();
  out.at_least = !in_time || !search.fell_short();
  if (!in_time && !out.above.empty()) {
    out.above += "; the time was over before it could be told closer";
  }
  if (out.above.empty()) {
    out.above =
        in_time ? "more was not tried" : "the time was over; a longer --duration finds more";
  }
  return true;
}

// One mock is one thread: where there are cores it must not be what is measured.
std::size_t Calibration::null_processes() const {
  return std::clamp<std::size_t>(sys::usable_cores() / 2, 1, std::size_t{3} * rig_.agents);
}

bool Calibration::find_requests(Instant until) {
  if (!serve(null_processes(), {"--null"})) {
    return false;
  }
  LoadSearch loads({2000.0 * rig_.agents, 1e6, 1.15});
  return search(
      "short requests per second", loads, until,
      [&](double per_s) {
        StepLoad load;
        load.urls = server_.urls();
        load.streaming = false;
        load.per_s = per_s;
        load.settle = kSettle;
        load.window = window_;
        load.drain = Duration::seconds(10);
        return load;
      },
      requests_);
}

StepLoad Calibration::streams_of(double events_per_s) const {
  StepLoad load;
  load.urls = server_.urls();
  load.concurrency = static_cast<std::uint32_t>(std::max(1.0, events_per_s / kEventsPerStream));
  load.offered_per_s = load.concurrency * kEventsPerStream;
  load.settle = kSettle;  // the start in step has spread
  load.window = window_;
  load.drain = Duration::seconds(15);
  return load;
}

bool Calibration::find_events(Instant until) {
  if (!serve(null_processes(),
             {"--ttft", "uniform:5ms:50ms", "--gap", "20ms", "--tokens", "uniform:25:75"})) {
    return false;
  }
  LoadSearch loads({5000.0 * rig_.agents, kStreamsPerMock * kEventsPerStream, 1.15});
  return search(
      "stream events per second", loads, until, [&](double per_s) { return streams_of(per_s); },
      events_);
}

bool Calibration::find_streams(Instant until) {
  const std::uint64_t files = sys::open_files_limit().hard;
  const double by_files = files > kFilesKept * 2 ? static_cast<double>(files - kFilesKept) : 100;
  const double most = std::floor(std::min(by_files, kStreamsMaxPerAgent)) * rig_.agents;
  // Held ones speak every two seconds; what they say costs little beside their being there.
  const auto mocks = static_cast<std::size_t>(std::ceil(most / kStreamsPerMock)) + 1;
  if (!serve(mocks, {"--ttft", "uniform:100ms:2s", "--gap", "2s", "--tokens", "uniform:2:3"})) {
    return false;
  }
  const double first = duration_s_ < 20 ? most / 64 : most / 4;
  LoadSearch loads({first, most, 1.3});
  const bool done = search(
      "streams held", loads, until,
      [&](double streams) {
        StepLoad load;
        load.urls = server_.urls();
        load.concurrency = static_cast<std::uint32_t>(streams);
        load.settle = kSettle;
        load.window = window_;
        load.drain = Duration::seconds(20);
        return load;
      },
      streams_);
  if (loads.reached_most()) {
    streams_.above = fmt::format("the most that was asked: {:.0f} per agent of {} open files each",
                                 most / rig_.agents, files);
  }
  return done;
}

bool Calibration::compare_stamps() {
  const double events = std::min(kStampEventsMax, std::max(100.0, events_.best / 2));
  StepLoad load;
  if (!serve(null_processes(), {"--ttft", "uniform:5ms:50ms", "--gap", "20ms", "--tokens",
                                "uniform:25:75", "--text", "stamp"})) {
    return false;
  }
  load = streams_of(events);
  load.stamps = true;
  load.window = window_ + window_;
  return step(load, stamps_);
}

ExitCode Calibration::run() {
  const Instant began = now();
  const auto share = [&](double of_duration) {
    return began + Duration::from_seconds(duration_s_ * of_duration);
  };
  if (find_requests(share(0.28)) && find_events(share(0.55)) && find_streams(share(0.95))) {
    compare_stamps();
  }
  server_.stop();
  return failure_;
}

std::string Calibration::text() const {
  std::string out = "\n----------------- Calibration of this host -----------------\n";
  out += fmt::format(
      "Agents: {}, transport {}; {} usable cores, shared with the null server; load average {}\n",
      rig_.agents, way_name(rig_.way), sys::usable_cores(), load_average());
  const auto row = [&out](const char* what, const Finding& finding) {
    out += finding.best > 0
               ? fmt::format("  {:<26} {:>9.0f}   {}\n", what, finding.best, finding.above)
               : fmt::format("  {:<26} {:>9}   {}\n", what, "none", finding.above);
  };
  out += "Most that held, and why not more:\n";
  row("short requests per second", requests_);
  row("stream events per second", events_);
  row("streams held", streams_);
  out += fmt::format("Queries sent in all: {}, failed: {}\n", queries_, failed_);
  out += fmt::format("Client stamp − server stamp, one clock, at {:.0f} events/s:\n",
                     stamps_.seen.achieved_per_s);
  out += stamp_row("first tokens", stamps_.first_tokens);
  out += stamp_row("later tokens", stamps_.later_tokens);
  out +=
      "What it means: a floor for this host as it was just now. The null server took its share of\n"
      "the same cores, so against servers elsewhere there is more; loopback says nothing of the\n"
      "network card. A server stamp is taken just before the send, so the error holds the whole\n"
      "way from there to our stamp.\n";
  return out;
}

}  // namespace tutti
