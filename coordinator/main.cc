// tutti: the coordinator and the command line.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "common/spec/flags.h"
#include "common/spec/redact.h"
#include "coordinator/commands.h"

namespace tutti {
namespace {

struct Command {
  const char* name;
  base::ExitCode (*run)(const Words&);
};

constexpr Command kCommands[] = {
    {"benchmark", &benchmark_command},
    {"probe", &probe_command},
    {"calibrate", &calibrate_command},
    {"slurm", &slurm_command},
    {"srt", &srt_command},
    {"validate-yaml", &validate_yaml_command},
    {"init", &init_command},
    {"info", &info_command},
    {"eval", &eval_command},
    {"keys", &keys_command},
    {"report", &report_command},
};

std::string help_for(const Words& words) {
  const std::string first = words.empty() ? "" : words[0];
  const std::string second = words.size() < 2 ? "" : words[1];
  if (first == "benchmark" && second == "offline") {
    return spec::benchmark_help(spec::TestType::kOffline);
  }
  if (first == "benchmark" && second == "online") {
    return spec::benchmark_help(spec::TestType::kOnline);
  }
  if (first == "benchmark" && second == "from-config") {
    return spec::from_config_help();
  }
  if (first == "probe") {
    return probe_help();
  }
  if (first == "calibrate") {
    return calibrate_help();
  }
  if (first == "slurm") {
    return slurm_help();
  }
  if (first == "srt") {
    return srt_help();
  }
  if (first == "validate-yaml") {
    return validate_yaml_help();
  }
  if (first == "init") {
    return init_help();
  }
  if (first == "keys") {
    return keys_help();
  }
  if (first == "report") {
    return report_help();
  }
  if (first == "info") {
    return info_help();
  }
  return general_help();
}

// The list of processes is open to everybody on the host.
void hide_secrets(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    const std::size_t equals = word.find('=');
    if (!spec::is_secret_flag(word)) {
      continue;
    }
    char* value = equals != std::string_view::npos ? argv[i] + equals + 1
                  : i + 1 < argc                   ? argv[i + 1]
                                                   : nullptr;
    for (; value != nullptr && *value != '\0'; ++value) {
      *value = '*';
    }
  }
}

base::ExitCode run(Words words) {
  const spec::GlobalFlags global = spec::take_global_flags(words);
  if (global.version) {
    std::puts(TUTTI_VERSION);
    return base::ExitCode::kOk;
  }
  const bool nothing_asked = words.empty() || (words.size() == 1 && words[0] == "benchmark");
  if (global.help || nothing_asked) {
    std::fputs(help_for(words).c_str(), stdout);
    return base::ExitCode::kOk;
  }
  base::start_log("tutti", global.verbosity >= 2 ? base::LogLevel::kDebug : base::LogLevel::kInfo);
  const auto* const command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                           [&](const Command& c) { return words[0] == c.name; });
  if (command == std::end(kCommands)) {
    return usage_error(fmt::format("unknown command \"{}\"", words[0]), "");
  }
  return command->run(Words(words.begin() + 1, words.end()));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    tutti::Words words(argv + 1, argv + argc);
    tutti::hide_secrets(argc, argv);
    return static_cast<int>(tutti::run(std::move(words)));
  } catch (const std::exception& e) {
    // Ours are values; what arrives here came out of a library where nobody expected it.
    std::fprintf(stderr, "tutti: unexpected: %s\n", e.what());
    return static_cast<int>(tutti::base::ExitCode::kUsage);
  }
}
