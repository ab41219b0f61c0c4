// tutti-agent: executes issue commands for a coordinator.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include "agent/session/agent_host.h"
#include "common/base/log.h"
#include "common/base/time.h"
#include "common/sys/signals.h"

namespace tutti {
namespace {

constexpr std::uint32_t kWorkersMax = 256;

std::string default_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/tutti/bodies";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::filesystem::temp_directory_path().string() + "/tutti-bodies"
                         : std::string(home) + "/.cache/tutti/bodies";
}

void describe(CLI::App& app, session::AgentSettings& settings, bool& debug) {
  app.description(
      "Executes the issue commands of a tutti coordinator on this host and ships the records "
      "back.\n"
      "With --connect it joins one run and exits with it (0: the run ended as planned, 3: no\n"
      "coordinator, 4: the coordinator was lost). With --listen it serves one run after another\n"
      "until SIGINT or SIGTERM.");
  auto* connect = app.add_option("--connect", settings.connect,
                                 "dial the coordinator here: tcp://HOST:PORT or ipc://PATH");
  auto* listen = app.add_option("--listen", settings.listen,
                                "wait to be dialled here: tcp://ADDRESS:PORT (port * takes a free "
                                "one)");
  connect->excludes(listen);
  app.add_option("--name", settings.name, "name in reports, unique in a run (default: HOST:PID)");
  app.add_option("--workers", settings.workers, "I/O threads; each drives its share of the streams")
      ->check(CLI::Range(1U, kWorkersMax))
      ->capture_default_str();
  app.add_option("--source-address", settings.source_addresses,
                 "addresses of this host that connections to frontends come from, spread evenly, "
                 "separated by commas; instead of the run's distributed.source_addresses")
      ->delimiter(',');
  app.add_option("--cache-dir", settings.cache_folder,
                 "where body sets are kept between runs, by content hash")
      ->capture_default_str();
  app.add_option("--spool-dir", settings.spool_folder,
                 "where a copy of all records is kept until the run has ended; from it tutti "
                 "report --from-spools rebuilds the report of a run that lost its coordinator")
      ->capture_default_str();
  auto* keys = app.add_option("--keys", settings.keys_file,
                              "file with this agent's key pair (tutti keys new FILE)");
  auto* coordinator = app.add_option("--coordinator-key", settings.coordinator_file,
                                     "file with the coordinator's public key (its .pub)");
  keys->needs(coordinator);
  coordinator->needs(keys);
  app.add_flag("--insecure", settings.insecure,
               "allow a bind that other hosts can reach, without keys: prompts and API keys then "
               "travel in clear text and anyone may give orders");
  app.add_flag("--debug", debug, "debug lines");
  app.set_version_flag("--version", TUTTI_VERSION);
}

int run(int argc, char** argv) {
  session::AgentSettings settings;
  settings.cache_folder = default_cache();
  settings.spool_folder = std::filesystem::temp_directory_path().string() + "/tutti-spool";
  bool debug = false;
  CLI::App app("tutti-agent");
  describe(app, settings, debug);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(base::ExitCode::kUsage);
  }
  if (!settings.connect && !settings.listen) {
    std::fputs("tutti-agent: one of --connect and --listen is needed; see --help\n", stderr);
    return static_cast<int>(base::ExitCode::kUsage);
  }
  base::start_log("tutti-agent", debug ? base::LogLevel::kDebug : base::LogLevel::kInfo);
  std::signal(SIGPIPE, SIG_IGN);
  sys::StopSignals signals;  // before any thread
  const base::SystemClock clock;
  return static_cast<int>(session::serve(settings, clock, signals));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  try {
    return tutti::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tutti-agent: unexpected: %s\n", e.what());
    return static_cast<int>(tutti::base::ExitCode::kExecution);
  }
}
