// calibrate: how much load this host can drive honestly, measured with real runs against a null
// server on loopback: requests, stream events, streams held, and how exact the stamps are.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/spec/read.h"
#include "common/sys/signals.h"
#include "coordinator/calibrate_search.h"
#include "coordinator/calibration.h"
#include "coordinator/commands.h"
#include "coordinator/run_setup.h"

namespace tutti {
namespace {

using base::ExitCode;

constexpr std::uint32_t kAgentsMax = 64;

struct Options {
  double duration_s = 60;
  std::uint32_t agents = 1;
  bool agents_told = false;  // on the command line
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
      "The null server runs on the same cores as the client, and takes about one and a half\n"
      "times the CPU a client does. So the figures are a floor for this host under whatever else "
      "runs\n"
      "on it now: against servers elsewhere it can drive more, and loopback says nothing of its\n"
      "network card. Run it on an idle host, and on the host that will drive the load.\n"
      "\n"
      "With -c FILE: the head-room factor of that config, i.e. measured capacity per agent times\n"
      "its agents, over what it asks for. Local agents are measured together. Below 1 the client\n"
      "would be the bottleneck; take 2 or more.\n"
      "Exit codes: 0 measured, 1 usage, 2 the config is wrong, 3 no null server or no\n"
      "agents, 4 a run broke, 130 interrupted.");
  app.add_option("--duration", o.duration_s, "seconds that all of it may take, about")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  app.add_option("--agents", o.agents,
                 "agent processes to start here; with -c and local agents: as many as it has")
      ->check(CLI::Range(1U, kAgentsMax))
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

// ---- head-room -------------------------------------------------------------------------------

struct Asked {
  Expected expected;
  std::uint32_t agents = 1;
  std::uint32_t local_agents = 0;  // of them, on the coordinator's host
  std::string words;
};

Asked asked_by(const spec::Config& config, double tokens_per_stream) {
  Asked asked;
  const auto& pattern = config.settings.load_pattern;
  const bool streaming = config.model_params.streaming == spec::Streaming::kOn;
  conduct::RunInput input;
  conduct::PhaseInput phase;
  const bool closed = pattern.type == spec::Pattern::kConcurrency ||
                      pattern.type == spec::Pattern::kAgenticInference;
  if (closed && pattern.target_concurrency) {
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
  const conduct::HostSettings settings = host_settings(config, input, "");
  asked.agents = settings.plan.agents_expected;
  asked.local_agents = settings.local_agents;
  return asked;
}

// What the command line leaves open is measured as the config would run it.
void take_from(const spec::Config& config, Options& options) {
  const auto local = asked_by(config, options.tokens_per_stream).local_agents;
  if (!options.agents_told && local > 0) {
    options.agents = std::min(local, kAgentsMax);
  }
  const spec::Distributed& distributed = config.distributed;
  if (options.transport == "auto" && distributed.transport != base::Way::kAuto) {
    options.transport = distributed.transport == base::Way::kDirect ? "direct" : "multi";
  }
  if (options.workers == 0) {
    options.workers = static_cast<std::uint32_t>(distributed.workers);
  }
}

// Why capacity per agent cannot be multiplied by the config's agents; empty: it can. Agents on this
// host share its cores, so only a measurement with as many of them says what they can do.
std::string cannot_scale(const Options& options, const Asked& asked) {
  if (asked.local_agents == 0) {
    return {};
  }
  if (asked.local_agents != asked.agents) {
    return fmt::format("{} of its {} agents share one host", asked.local_agents, asked.agents);
  }
  return asked.agents == options.agents
             ? ""
             : fmt::format("its {} agents share one host and {} were measured; leave --agents out",
                           asked.agents, options.agents);
}

// What the config's run costs beside the plain HTTP/1.1 requests to the null server.
std::vector<const char*> not_measured(const spec::Config& config) {
  std::vector<const char*> parts;
  const auto& urls = config.endpoint_config.endpoints;
  if (std::any_of(urls.begin(), urls.end(),
                  [](const std::string& url) { return url.rfind("https:", 0) == 0; })) {
    parts.push_back("its endpoints are https: what TLS costs");
  }
  if (config.distributed.http_version == spec::HttpVersion::kHttp2) {
    parts.push_back("it speaks HTTP/2, whose cost");
  }
  if (config.distributed.proxy) {
    parts.push_back("it goes through a proxy, whose cost");
  }
  return parts;
}

std::string head_room_text(const Options& options, const spec::Config& config,
                           const Measured& measured) {
  const Asked asked = asked_by(config, options.tokens_per_stream);
  const auto room = head_room(measured, asked.expected, asked.agents);
  if (!room) {
    return "  none can be told: the whole data set at once asks for no rate; it goes as fast as\n"
           "  client and servers do\n";
  }
  if (const std::string why = cannot_scale(options, asked); !why.empty()) {
    return fmt::format("  cannot be told: {}\n", why);
  }
  if (!room->untold.empty()) {
    return fmt::format("  cannot be told: nothing was measured of {}\n", room->untold);
  }
  std::string out = fmt::format(
      "  factor {}{:.2f} ({})\n  asked: {}; capacity: what was measured per agent × {} agents\n",
      room->at_least ? "at least " : "", room->factor, room->by, asked.words, asked.agents);
  out += asked.local_agents > 0
             ? "  measured with as many agents on this host as it asks for\n"
             : "  assumed: all its agents are on hosts like this one, each with these cores to "
               "itself\n";
  for (const char* const part : not_measured(config)) {
    out += fmt::format("  {} is not part of what was measured\n", part);
  }
  if (room->factor < 1) {
    out += room->at_least ? "  below 1, but the search was not at its end: a longer --duration "
                            "says more\n"
                          : "  below 1: the client would be the bottleneck; add agents on further "
                            "hosts\n";
  }
  return out;
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
  Calibration calibration(std::move(rig), options.duration_s);
  const ExitCode code = calibration.run();
  if (code != ExitCode::kOk) {
    return code;
  }
  std::fputs(calibration.text().c_str(), stdout);
  if (config) {
    const auto capacity = [](const Finding& found) { return Capacity{found.best, found.at_least}; };
    const Measured measured{capacity(calibration.events()), capacity(calibration.requests()),
                            capacity(calibration.streams()), options.agents};
    std::fputs(fmt::format("Head-room of {}:\n{}", options.config,
                           head_room_text(options, *config, measured))
                   .c_str(),
               stdout);
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
    options.agents_told = app.count("--agents") > 0;
    take_from(*config, options);
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
