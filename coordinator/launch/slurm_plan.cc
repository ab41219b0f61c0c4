#include "coordinator/launch/slurm_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/spec/redact.h"
#include "common/text/hostlist.h"

namespace tutti::launch {
namespace {

using base::ExitCode;
using Hosts = std::vector<std::string>;

bool holds(const Hosts& hosts, const std::string& host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

base::Result<Hosts> hosts_of(const std::string& list, const std::string& what) {
  auto hosts = text::expand_hostlist(list);
  if (!hosts) {
    return base::fail(ExitCode::kUsage, fmt::format("{}: {}", what, hosts.error().message));
  }
  Hosts once;
  for (auto& host : *hosts) {
    if (!holds(once, host)) {
      once.push_back(std::move(host));
    }
  }
  if (once.empty()) {
    return base::fail(ExitCode::kUsage, fmt::format("{} names no host", what));
  }
  return once;
}

base::Result<Hosts> hosts_of_run(const LaunchOptions& options, const Environment& environment) {
  if (options.hosts) {
    return hosts_of(*options.hosts, "--hosts");
  }
  if (options.job) {
    return base::fail(
        ExitCode::kUsage,
        fmt::format("--jobid needs --hosts: `squeue -h -j {} -o %N` tells them", *options.job));
  }
  // The job's list, not the step's: in a batch script and under salloc there is no step.
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (const auto list = environment(name); list && !list->empty()) {
      return hosts_of(*list, name);
    }
  }
  return base::fail(ExitCode::kUsage,
                    "not inside a Slurm allocation (no SLURM_JOB_NODELIST): start it from sbatch "
                    "or salloc, or name the job with --jobid and its hosts with --hosts");
}

base::Status check_benchmark(const LaunchOptions& options) {
  if (options.benchmark.empty() || options.benchmark[0] != "benchmark") {
    return base::fail(ExitCode::kUsage,
                      "what follows -- must begin with `benchmark`, e.g. -- benchmark from-config "
                      "-c run.yaml");
  }
  for (const std::string& word : options.benchmark) {
    for (const char* ours :
         {"--listen", "--expect-agents", "--local-agents", "--agents", "--keys", "--agent-keys"}) {
      if (word == ours || word.rfind(std::string(ours) + "=", 0) == 0) {
        return base::fail(ExitCode::kUsage,
                          fmt::format("{} after --: the launcher decides it; leave it out", word));
      }
    }
    if (spec::is_secret_flag(word)) {
      return base::fail(ExitCode::kUsage,
                        fmt::format("{} after --: srun would show it in the process lists of all "
                                    "hosts; write it into the config, as in api_key: "
                                    "\"${{API_KEY}}\", and export the variable",
                                    word.substr(0, word.find('='))));
    }
  }
  return {};
}

base::Status check_secure(const LaunchOptions& options) {
  if (options.insecure || !options.keys.empty()) {
    return {};
  }
  return base::fail(
      ExitCode::kUsage,
      "agents on other hosts need keys: --shared DIR makes them for this run, --keys DIR names a "
      "folder with coordinator.key and agent.key (tutti keys new); or --insecure: whoever reaches "
      "the port can then join the run, and prompts and API keys travel in clear text");
}

Words srun_line(const LaunchOptions& options, const Hosts& hosts, const std::string& name) {
  Words line{options.srun};
  if (options.job) {
    append(line, {"--jobid", *options.job});
  }
  // A step shares the hosts' cores with whatever runs there, and its threads are not pinned to one.
  append(line, {"--overlap", "-N", std::to_string(hosts.size()), "-n", std::to_string(hosts.size()),
                "--ntasks-per-node=1", "--nodelist", fmt::format("{}", fmt::join(hosts, ",")),
                "--cpu-bind=none", "--input=none", "--job-name=" + name});
  append(line, options.srun_words);
  return line;
}

Words agent_words(const LaunchOptions& options, const Programs& programs) {
  Words words{programs.agent, "--wait", std::to_string(options.wait_s), "--term-grace",
              std::to_string(options.grace_s)};
  if (options.workers > 0) {
    append(words, {"--workers", std::to_string(options.workers)});
  }
  if (!options.keys.empty()) {
    append(words, {"--keys", options.keys + "/agent.key", "--coordinator-key",
                   options.keys + "/coordinator.key.pub"});
  } else if (options.insecure) {
    words.emplace_back("--insecure");
  }
  return words;
}

// The coordinator's words beyond the user's. `agents` in all, `local` of them started by itself.
// The coordinator waits for agents as long as they look for it, unless the user says how long.
bool says_how_long_to_wait(const Words& benchmark) {
  return std::any_of(benchmark.begin(), benchmark.end(), [](const std::string& word) {
    return word.rfind("--gather-timeout", 0) == 0 ||
           word.rfind("--distributed.gather-timeout-s", 0) == 0;
  });
}

Words coordinator_words(const LaunchOptions& options, const Programs& programs, std::size_t agents,
                        std::size_t local, const std::string& listen) {
  Words words{programs.tutti};
  append(words, options.benchmark);
  append(words, {"--local-agents", std::to_string(local)});
  if (agents > local) {
    append(words, {"--listen", listen, "--expect-agents", std::to_string(agents)});
    if (!says_how_long_to_wait(options.benchmark)) {
      append(words, {"--gather-timeout", std::to_string(options.wait_s)});
    }
    if (!options.keys.empty()) {
      append(words, {"--keys", options.keys + "/coordinator.key", "--agent-keys",
                     options.keys + "/agent.key.pub"});
    } else if (options.insecure) {
      words.emplace_back("--insecure-agents");
    }
  }
  if (options.workers > 0) {
    append(words, {"--agent-workers", std::to_string(options.workers)});
  }
  return words;
}

std::string listen_at(std::uint16_t port) { return fmt::format("tcp://0.0.0.0:{}", port); }

std::optional<std::uint32_t> number(const std::optional<std::string>& text) {
  std::uint32_t value = 0;
  if (!text || text->empty()) {
    return std::nullopt;
  }
  const char* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace

base::Result<Launch> plan_launch(const LaunchOptions& options, const Environment& environment,
                                 const Programs& programs, const std::string& private_folder) {
  if (auto status = check_benchmark(options); !status) {
    return tl::unexpected(status.error());
  }
  const auto hosts = hosts_of_run(options, environment);
  if (!hosts) {
    return tl::unexpected(hosts.error());
  }
  Launch launch;
  launch.coordinator_host = options.coordinator.value_or(hosts->front());
  auto agents = options.agents_on ? hosts_of(*options.agents_on, "--agents-on") : *hosts;
  if (!agents) {
    return tl::unexpected(agents.error());
  }
  launch.agent_hosts = std::move(*agents);
  for (const std::string& host : launch.agent_hosts) {
    if (!holds(*hosts, host)) {
      return base::fail(ExitCode::kUsage,
                        fmt::format("--agents-on: {} is not a host of this run ({})", host,
                                    fmt::join(*hosts, ",")));
    }
  }
  if (!holds(*hosts, launch.coordinator_host)) {
    return base::fail(ExitCode::kUsage,
                      fmt::format("--coordinator: {} is not a host of this run ({})",
                                  launch.coordinator_host, fmt::join(*hosts, ",")));
  }
  Hosts remote = launch.agent_hosts;
  std::erase(remote, launch.coordinator_host);
  const std::size_t local = launch.agent_hosts.size() - remote.size();
  if (!remote.empty()) {
    if (auto status = check_secure(options); !status) {
      return tl::unexpected(status.error());
    }
  }

  const std::string rendezvous = private_folder + "/coordinator";
  launch.coordinator_line = srun_line(options, {launch.coordinator_host}, "tutti-coordinator");
  append(launch.coordinator_line,
         coordinator_words(options, programs, launch.agent_hosts.size(), local,
                           options.shared ? "tcp://0.0.0.0:*" : listen_at(options.port)));
  if (remote.empty()) {
    return launch;
  }
  launch.agents_line = srun_line(options, remote, "tutti-agents");
  launch.agents_line.emplace_back("--label");
  append(launch.agents_line, agent_words(options, programs));
  if (options.shared) {
    append(launch.coordinator_line, {"--rendezvous", rendezvous});
    append(launch.agents_line, {"--rendezvous", rendezvous});
  } else {
    append(launch.agents_line,
           {"--connect", fmt::format("tcp://{}:{}", launch.coordinator_host, options.port)});
  }
  return launch;
}

base::Result<Words> plan_task(const LaunchOptions& options, const Environment& environment,
                              const Programs& programs) {
  if (auto status = check_benchmark(options); !status) {
    return tl::unexpected(status.error());
  }
  const auto rank = number(environment("SLURM_PROCID"));
  const auto tasks = number(environment("SLURM_NTASKS"));
  const auto list = environment("SLURM_STEP_NODELIST");
  if (!rank || !tasks || !list || *tasks == 0) {
    return base::fail(ExitCode::kUsage,
                      "not inside a step (SLURM_PROCID, SLURM_NTASKS or SLURM_STEP_NODELIST is "
                      "missing): start it with srun");
  }
  const auto hosts = hosts_of(*list, "SLURM_STEP_NODELIST");
  if (!hosts) {
    return tl::unexpected(hosts.error());
  }
  if (*tasks > 1) {
    if (auto status = check_secure(options); !status) {
      return tl::unexpected(status.error());
    }
  }
  if (*rank == 0) {
    return coordinator_words(options, programs, *tasks, 1, listen_at(options.port));
  }
  Words words = agent_words(options, programs);
  append(words, {"--connect", fmt::format("tcp://{}:{}", hosts->front(), options.port)});
  return words;
}

}  // namespace tutti::launch
