// calibrate: how much load this host can drive honestly, measured with real runs against a null
// server on loopback: requests, stream events, streams held, and how exact the stamps are.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/spec/read.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"
#include "coordinator/calibrate_search.h"
#include "coordinator/calibrate_step.h"
#include "coordinator/commands.h"
#include "coordinator/null_server.h"
#include "coordinator/run_setup.h"

namespace tutti {
namespace {

using base::Duration;
using base::ExitCode;
using base::Instant;

// Streams of the null server: 25 to 75 tokens, 20 ms apart, after 5 to 50 ms.
constexpr double kTokensMean = 50;
constexpr double kGapS = 0.02;
constexpr double kStreamS = 0.0275 + (kTokensMean - 1) * kGapS;
constexpr double kEventsPerStream = kTokensMean / kStreamS;  // per second
constexpr double kStampEventsMax = 10'000;                   // load under which stamps are compared
constexpr std::uint64_t kStreamsPerMock = 15'000;
constexpr std::uint64_t kFilesKept = 200;  // of an agent, beside its streams
constexpr double kStreamsMaxPerAgent = 18'000;

struct Options {
  double duration_s = 60;
  std::uint32_t agents = 1;
  std::uint32_t workers = 0;
  std::string transport = "auto";
  std::string config;
  double tokens_per_stream = 50;
};

void describe(CLI::App& app, Options& o) {
  app.description(
      "Measures what this host can honestly drive: short requests per second, events of streams\n"
      "per second, streams held at once, and how far the client's token stamps lie from the\n"
      "server's own. Each figure comes from whole runs (this coordinator, local agents, the real\n"
      "way onto the wire) against tutti-mock as a null server, which is started on loopback and\n"
      "ended again. \"Honestly\" means: no failed query, no lost record, p99 of issued − due at\n"
      "most 1 ms, the busiest agent thread below 80 % of a core, and the load really came about.\n"
      "\n"
      "The null server runs on the same cores as the client, and takes about two to three times\n"
      "the CPU a client does. So the figures are a floor for this host under whatever else runs\n"
      "on it now: against servers elsewhere it can drive more, and loopback says nothing of its\n"
      "network card. Run it on an idle host, and on the host that will drive the load.\n"
      "\n"
      "With -c FILE: the head-room factor of that config, i.e. measured capacity per agent times\n"
      "its agents, over what it asks for. Below 1 the client would be the bottleneck; take 2 or\n"
      "more. Exit codes: 0 measured, 1 usage, 2 the config is wrong, 3 no null server or no\n"
      "agents, 4 a run broke, 130 interrupted.");
  app.add_option("--duration", o.duration_s, "seconds that all of it may take, about")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  app.add_option("--agents", o.agents, "agent processes to start here")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
  app.add_option("--workers", o.workers, "I/O threads of each agent; 0: as a run would choose")
      ->check(CLI::Range(0U, 1024U))
      ->capture_default_str();
  app.add_option("--transport", o.transport, "auto, direct or multi")
      ->check(CLI::IsMember({"auto", "direct", "multi"}))
      ->capture_default_str();
  app.add_option("-c,--config", o.config, "a config to compute the head-room factor for");
  app.add_option("--tokens-per-second-per-stream", o.tokens_per_stream,
                 "what the head-room factor assumes of the servers: output events of one stream")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
}

base::Way way_of(const std::string& name) {
  return name == "direct"  ? base::Way::kDirect
         : name == "multi" ? base::Way::kMulti
                           : base::Way::kAuto;
}

// What one search found, in words for the table.
struct Finding {
  double best = 0;
  std::string above;  // why not more
};

class Calibration {
 public:
  Calibration(const Options& options, CalibrationRig rig)
      : options_(options), rig_(std::move(rig)), window_(window_of(options.duration_s)) {}

  ExitCode run();
  const Finding& requests() const { return requests_; }
  const Finding& events() const { return events_; }
  const Finding& streams() const { return streams_; }

 private:
  static Duration window_of(double duration_s) {
    return Duration::from_seconds(std::clamp(duration_s / 50, 0.4, 2.0));
  }
  Instant now() const { return rig_.clock->mono(); }

  // Loads up to `until`; `load_of` makes a step of a number. Fails when a run broke.
  template <class LoadOf>
  bool search(const char* what, LoadSearch& search, Instant until, LoadOf load_of, Finding& out);
  bool step(const StepLoad& load, StepResult& out);
  bool serve(std::size_t processes, const std::vector<std::string>& flags);
  bool find_requests(Instant until);
  bool find_events(Instant until);
  bool find_streams(Instant until);
  bool compare_stamps();
  StepLoad streams_of(double events_per_s) const;
  void print() const;

  const Options& options_;
  CalibrationRig rig_;
  Duration window_;
  NullServer server_;
  Finding requests_;
  Finding events_;
  Finding streams_;
  StepResult stamps_;
  std::uint64_t queries_ = 0;  // sent in all steps
  std::uint64_t failed_ = 0;
  ExitCode failure_ = ExitCode::kOk;
};

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
    const std::string why = shortfall(result.seen, StepLimits{});
    base::log_info("calibrate",
                   fmt::format("{} {:.0f}: {}", what, *load,
                               why.empty() ? fmt::format("holds (busiest thread {:.2f})",
                                                         result.seen.cpu_busiest)
                                           : why));
    if (!why.empty()) {
      out.above = fmt::format("at {:.0f}: {}", *load, why);
    }
    search.tell(why.empty(), result.seen.cpu_busiest / StepLimits{}.cpu_busiest_max);
    longest = std::max(longest, now() - began);
  }
  out.best = search.best();
  if (out.above.empty()) {
    out.above =
        in_time ? "more was not tried" : "the time was over; a longer --duration finds more";
  }
  return true;
}

bool Calibration::find_requests(Instant until) {
  if (!serve(1, {"--null"})) {
    return false;
  }
  LoadSearch loads({2000.0 * rig_.agents, 1e6, 1.15});
  return search(
      "short requests per second", loads, until,
      [&](double per_s) {
        StepLoad load;
        load.urls = server_.urls();
        load.streaming = false;
        load.per_s = load.offered_per_s = per_s;
        load.settle = window_;
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
  load.settle = Duration::millis(700);  // the start in step has spread
  load.window = window_;
  load.drain = Duration::seconds(15);
  return load;
}

bool Calibration::find_events(Instant until) {
  if (!serve(1, {"--ttft", "uniform:5ms:50ms", "--gap", "20ms", "--tokens", "uniform:25:75"})) {
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
  const double first = options_.duration_s < 20 ? most / 64 : most / 4;
  LoadSearch loads({first, most, 1.3});
  const bool done = search(
      "streams held", loads, until,
      [&](double streams) {
        StepLoad load;
        load.urls = server_.urls();
        load.concurrency = static_cast<std::uint32_t>(streams);
        load.settle = Duration::seconds(1);
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
  if (!serve(1, {"--ttft", "uniform:5ms:50ms", "--gap", "20ms", "--tokens", "uniform:25:75",
                 "--text", "stamp"})) {
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
    return began + Duration::from_seconds(options_.duration_s * of_duration);
  };
  const bool all = find_requests(share(0.3)) && find_events(share(0.6)) &&
                   find_streams(share(0.93)) && compare_stamps();
  server_.stop();
  if (all) {
    print();
  }
  return failure_;
}

std::string stamp_row(const char* what, const StampError& e) {
  if (e.count == 0) {
    return fmt::format("  {:<26} no token in the window\n", what);
  }
  const auto us = [](Duration d) { return d.to_seconds() * 1e6; };
  return fmt::format("  {:<26} p50 {:.1f} µs, p99 {:.1f} µs, p99.9 {:.1f} µs (of {} tokens)\n",
                     what, us(e.p50), us(e.p99), us(e.p999), e.count);
}

void Calibration::print() const {
  std::string out = "\n----------------- Calibration of this host -----------------\n";
  out += fmt::format("Agents: {}, transport {}; {} usable cores, shared with the null server\n",
                     rig_.agents, options_.transport, sys::usable_cores());
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
  std::fputs(out.c_str(), stdout);
}

// ---- head-room ---------------------------------------------------------------------------------

struct Asked {
  Expected expected;
  std::uint32_t agents = 1;
  std::string words;
};

Asked asked_by(const spec::Config& config, double tokens_per_stream) {
  Asked asked;
  const auto& pattern = config.settings.load_pattern;
  const bool streaming = config.model_params.streaming == spec::Streaming::kOn;
  conduct::RunInput input;
  conduct::PhaseInput phase;
  if (pattern.type == spec::Pattern::kConcurrency && pattern.target_concurrency) {
    const auto streams = static_cast<double>(*pattern.target_concurrency);
    phase.spec.concurrency = static_cast<std::uint32_t>(*pattern.target_concurrency);
    asked.expected.streams = streams;
    if (streaming) {
      asked.expected.events_per_s = streams * tokens_per_stream;
      asked.words = fmt::format("{:.0f} streams × {:g} events/s each", streams, tokens_per_stream);
    } else {
      asked.words = fmt::format(
          "{:.0f} queries in flight; how many end per second is up to the servers", streams);
    }
  } else if (pattern.type == spec::Pattern::kPoisson && pattern.target_qps) {
    asked.expected.requests_per_s = *pattern.target_qps;
    asked.words = fmt::format("{:g} arrivals/s", *pattern.target_qps);
    if (streaming) {
      const auto tokens = static_cast<double>(config.model_params.max_new_tokens);
      asked.expected.events_per_s = *pattern.target_qps * tokens;
      asked.words += fmt::format(" × {:.0f} events at most (max_new_tokens)", tokens);
    }
  }
  input.phases.push_back(std::move(phase));
  asked.agents = host_settings(config, input, "").plan.agents_expected;
  return asked;
}

void print_head_room(const Options& options, const spec::Config& config, const Calibration& done) {
  const Asked asked = asked_by(config, options.tokens_per_stream);
  const Measured measured{done.events().best, done.requests().best, done.streams().best,
                          options.agents};
  std::string out = fmt::format("Head-room of {}:\n", options.config);
  const auto room = head_room(measured, asked.expected, asked.agents);
  if (!room) {
    out +=
        "  none can be told: the whole data set at once asks for no rate; it goes as fast as\n"
        "  client and servers do\n";
  } else {
    out += fmt::format(
        "  factor {:.2f} ({})\n  asked: {}; capacity: what was measured per agent × {} agents\n"
        "  assumed: all its agents are on hosts like this one, each with these cores to itself\n",
        room->factor, room->by, asked.words, asked.agents);
    if (room->factor < 1) {
      out += "  below 1: the client would be the bottleneck; add agents on further hosts\n";
    }
  }
  std::fputs(out.c_str(), stdout);
}

ExitCode calibrate_in(const std::string& folder, const Options& options,
                      const std::optional<spec::Config>& config) {
  sys::StopSignals signals;  // before any thread
  const base::SystemClock clock;
  CalibrationRig rig;
  rig.clock = &clock;
  rig.signals = &signals;
  rig.folder = folder;
  rig.agents = options.agents;
  rig.workers = options.workers;
  rig.way = way_of(options.transport);
  Calibration calibration(options, std::move(rig));
  const ExitCode code = calibration.run();
  if (code == ExitCode::kOk && config) {
    print_head_room(options, *config, calibration);
  }
  return code;
}

}  // namespace

std::string calibrate_help() {
  Options options;
  CLI::App app("", "tutti calibrate");
  describe(app, options);
  return app.help();
}

ExitCode calibrate_command(const Words& words) {
  Options options;
  CLI::App app("", "tutti calibrate");
  describe(app, options);
  Words reversed(words.rbegin(), words.rend());  // CLI11 takes them from the back
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& e) {
    return usage_error(e.what(), "calibrate");
  }
  std::optional<spec::Config> config;
  if (!options.config.empty()) {
    auto reading = spec::read_config_file(options.config, spec::process_environment);
    if (!reading) {
      base::log_error("calibrate", "Config error:\n" + spec::to_text(reading.error().problems));
      return ExitCode::kInput;
    }
    config = std::move(reading->config);
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tutti-calibrate-{}", getpid());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const ExitCode code = calibrate_in(folder, options, config);
  std::filesystem::remove_all(folder, error);
  return code;
}

}  // namespace tutti
