// tutti-agent: executes issue commands for a coordinator.

#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "agent/session/agent_host.h"
#include "agent/target/video_folder.h"
#include "common/base/log.h"
#include "common/base/time.h"
#include "common/sys/rendezvous.h"
#include "common/sys/signals.h"

namespace tutti {
namespace {

constexpr std::uint32_t kWorkersMax = 256;
constexpr std::uint32_t kWaitMaxS = 24 * 3600;
constexpr std::uint32_t kGraceMaxS = 3600;
constexpr int kLookEveryMs = 100;

// How the agent finds its coordinator and leaves it.
struct Meeting {
  std::optional<std::string> file;
  std::uint32_t wait_s = 60;
  std::uint32_t term_grace_s = 0;
};

std::string default_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/tutti/bodies";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::filesystem::temp_directory_path().string() + "/tutti-bodies"
                         : std::string(home) + "/.cache/tutti/bodies";
}

void describe(CLI::App& app, session::AgentSettings& settings, Meeting& meeting, bool& debug) {
  app.description(
      "Executes the issue commands of a tutti coordinator on this host and ships the records "
      "back.\n"
      "With --connect or --rendezvous it joins one run and exits with it (0: the run ended as "
      "planned, 3: no\n"
      "coordinator, 4: the coordinator was lost). With --listen it serves one run after another\n"
      "until SIGINT or SIGTERM.");
  auto* connect = app.add_option("--connect", settings.connect,
                                 "dial the coordinator here: tcp://HOST:PORT or ipc://PATH");
  auto* listen = app.add_option("--listen", settings.listen,
                                "wait to be dialled here: tcp://ADDRESS:PORT (port * takes a free "
                                "one)");
  connect->excludes(listen);
  app.add_option("--rendezvous", meeting.file,
                 "dial what this file names: a coordinator with the same --rendezvous writes it")
      ->excludes(connect)
      ->excludes(listen);
  app.add_option("--wait", meeting.wait_s, "seconds to look for a coordinator to dial")
      ->check(CLI::Range(1U, kWaitMaxS))
      ->capture_default_str();
  app.add_option(
         "--term-grace", meeting.term_grace_s,
         "seconds that a first stop signal leaves the coordinator to end the run first: for batch "
         "systems, which tell both at once")
      ->check(CLI::Range(0U, kGraceMaxS))
      ->capture_default_str();
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
  app.add_option("--video-dir", settings.video_folder,
                 "where videos are written that a server sends as raw MP4 bytes (api_type "
                 "videogen); without it such replies are failures")
      ->envname(target::kVideoFolderVariable);
  auto* keys = app.add_option("--keys", settings.keys_file,
                              "file with this agent's key pair (tutti keys new FILE)");
  auto* coordinator = app.add_option("--coordinator-key", settings.coordinator_file,
                                     "file with the coordinator's public key (its .pub)");
  keys->needs(coordinator);
  coordinator->needs(keys);
  app.add_flag("--insecure", settings.insecure,
               "bind or dial an address of other hosts without keys: prompts and API keys then "
               "travel in clear text and anyone may give orders");
  app.add_flag("--debug", debug, "debug lines");
  app.set_version_flag("--version", TUTTI_VERSION);
}

// The first published address that answers; kSetup when the time is over, kInterrupted by a signal.
// An address that does not answer may be a file left by a run that was killed, so the file is read
// anew each time.
base::Result<std::string> meet(const Meeting& meeting, const base::Clock& clock,
                               sys::StopSignals& signals) {
  const base::Instant until = clock.mono() + base::Duration::seconds(meeting.wait_s);
  base::log_info("agent", "looking for the coordinator in " + *meeting.file);
  while (clock.mono() < until) {
    for (const auto& endpoint : sys::published_endpoints(*meeting.file)) {
      if (sys::answers(endpoint, base::Duration::seconds(1))) {
        return endpoint;
      }
    }
    pollfd ready{signals.fd(), POLLIN, 0};
    poll(&ready, 1, kLookEveryMs);
    if (const auto signal = signals.take(); signal && (*signal == SIGINT || *signal == SIGTERM)) {
      return base::fail(base::ExitCode::kInterrupted, sys::StopSignals::name(*signal));
    }
  }
  return base::fail(
      base::ExitCode::kSetup,
      fmt::format("{} named no coordinator that answers within {} s (--wait); is the folder the "
                  "same on both hosts, and does the coordinator have --rendezvous?",
                  *meeting.file, meeting.wait_s));
}

int run(int argc, char** argv) {
  session::AgentSettings settings;
  settings.cache_folder = default_cache();
  settings.spool_folder = std::filesystem::temp_directory_path().string() + "/tutti-spool";
  bool debug = false;
  CLI::App app("tutti-agent");
  Meeting meeting;
  describe(app, settings, meeting, debug);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(base::ExitCode::kUsage);
  }
  if (!settings.connect && !settings.listen && !meeting.file) {
    std::fputs("tutti-agent: one of --connect, --listen and --rendezvous is needed; see --help\n",
               stderr);
    return static_cast<int>(base::ExitCode::kUsage);
  }
  base::start_log("tutti-agent", debug ? base::LogLevel::kDebug : base::LogLevel::kInfo);
  std::signal(SIGPIPE, SIG_IGN);
  sys::StopSignals signals;  // before any thread
  const base::SystemClock clock;
  settings.term_grace = base::Duration::seconds(meeting.term_grace_s);
  settings.patience = base::Duration::seconds(meeting.wait_s);
  if (meeting.file) {
    auto found = meet(meeting, clock, signals);
    if (!found) {
      base::log_error("agent", found.error().message);
      return static_cast<int>(found.error().code);
    }
    settings.connect = std::move(*found);
  }
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
