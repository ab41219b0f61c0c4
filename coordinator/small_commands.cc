// info, validate-yaml, init, eval: the commands that run nothing.

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "common/base/log.h"
#include "common/spec/dump.h"
#include "common/spec/read.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"
#include "coordinator/commands.h"
#include "coordinator/host_text.h"

namespace tutti {
namespace {

using base::ExitCode;

constexpr double kGb = 1024.0 * 1024.0 * 1024.0;

// The value of `--name VALUE`, `--name=VALUE` or `-n VALUE`; nothing when the words are anything
// else.
std::optional<std::string> single_option(const Words& words, const std::string& name,
                                         const std::string& short_name) {
  if (words.size() == 2 && (words[0] == name || words[0] == short_name)) {
    return words[1];
  }
  const std::string prefix = name + "=";
  if (words.size() == 1 && words[0].rfind(prefix, 0) == 0) {
    return words[0].substr(prefix.size());
  }
  return std::nullopt;
}

std::string python_enum(spec::TestType type) {
  static constexpr const char* kNames[] = {"OFFLINE", "ONLINE", "EVAL", "SUBMISSION"};
  return fmt::format("TestType.{}", kNames[static_cast<int>(type)]);
}

std::string memory_lines() {
  struct sysinfo memory {};
  if (sysinfo(&memory) != 0) {
    return "Memory:\n  unknown\n";
  }
  const double unit = static_cast<double>(memory.mem_unit) / kGb;
  const double total = static_cast<double>(memory.totalram) * unit;
  const double available = static_cast<double>(memory.freeram + memory.bufferram) * unit;
  const double used = total - available;
  return fmt::format(
      "Memory:\n  Total: {:.2f} GB\n  Available: {:.2f} GB\n  Used: {:.2f} GB ({:.1f}%)\n", total,
      available, used, total > 0 ? used / total * 100 : 0);
}

std::string disk_lines() {
  struct statvfs disk {};
  if (statvfs("/", &disk) != 0) {
    return "Disk (root):\n  unknown\n";
  }
  const double block = static_cast<double>(disk.f_frsize) / kGb;
  return fmt::format("Disk (root):\n  Total: {:.2f} GB\n  Free: {:.2f} GB\n",
                     static_cast<double>(disk.f_blocks) * block,
                     static_cast<double>(disk.f_bavail) * block);
}

std::string info_text() {
  utsname name{};
  uname(&name);
  const auto files = sys::open_files_limit();
  const char* user = std::getenv("USER");
  const char* venv = std::getenv("VIRTUAL_ENV");
  return fmt::format(
      "Inference Endpoint Benchmarking Tool v{} (tutti; not the MLPerf reference client)\n"
      "=== System Information ===\n"
      "Build:\n  Compiler: {}\n  C++: {}\n"
      "Operating System:\n  System: {}\n  Release: {}\n  Version: {}\n  Architecture: {}\n  "
      "Hostname: {}\n"
      "CPU:\n  Usable cores: {}\n{}"
      "{}{}{}"
      "Limits:\n  Open files: {} (hard limit {})\n  Local ports: {} per source address and "
      "frontend\n"
      "Environment:\n  Working Directory: {}\n  User: {}\n  Virtual Env: {}",
      TUTTI_VERSION, __VERSION__, __cplusplus, name.sysname, name.release, name.version,
      name.machine, name.nodename, sys::usable_cores(), host::cpu_lines(), memory_lines(),
      disk_lines(), host::network_lines(), files.soft, files.hard, sys::ephemeral_ports(),
      std::filesystem::current_path().string(), user == nullptr ? "unknown" : user,
      venv == nullptr ? "None" : venv);
}

}  // namespace

ExitCode usage_error(const std::string& text, const std::string& command) {
  std::fputs(
      fmt::format("Error: {}\nTry `tutti {}--help`.\n", text, command.empty() ? "" : command + " ")
          .c_str(),
      stderr);
  return ExitCode::kUsage;
}

std::string general_help() {
  return "Usage: tutti [-v…] COMMAND …\n"
         "\n"
         "A distributed load generator for LLM inference endpoints. Reads the YAML and the flags "
         "of\n"
         "MLPerf's inference-endpoint. It is not the MLPerf reference client: its runs are "
         "rehearsals.\n"
         "\n"
         "Commands:\n"
         "  benchmark offline      all queries at once; throughput counts\n"
         "  benchmark online       a concurrency held, or Poisson arrivals\n"
         "  benchmark from-config  run a YAML file (-c FILE)\n"
         "  probe                  send a few queries to each frontend and show the answers\n"
         "  calibrate              measure what this host can drive honestly\n"
         "  slurm run              start coordinator and agents inside a Slurm allocation\n"
         "  srt mlperf             be srt-slurm's benchmark command\n"
         "  validate-yaml          check a YAML file and say everything that is wrong with it\n"
         "  init                   write a template YAML\n"
         "  info                   this host and its limits\n"
         "  keys                   make and show the keys of coordinator and agents\n"
         "  report                 rebuild the report of a run whose coordinator was lost\n"
         "  eval                   not implemented, as in the reference\n"
         "\n"
         "Each has --help. Agents on other hosts are started with `tutti-agent`; `tutti-mock` is "
         "a\n"
         "server to try things on.\n"
         "\n"
         "  -v, --verbose  twice (-vv): debug lines\n"
         "  --version      print the version\n"
         "  -h, --help     this text, or the command's\n";
}

std::string info_help() {
  return "Usage: tutti info\n\nPrints the version, this host, and the limits that bound a run.\n";
}

std::string validate_yaml_help() {
  return "Usage: tutti validate-yaml -c FILE\n"
         "\n"
         "Reads FILE as `benchmark from-config` would and prints every problem with line, field, "
         "value\n"
         "and remedy. No data set is opened, nothing is sent. Exit code 0 or 2.\n";
}

std::string init_help() {
  return "Usage: tutti init KIND\n"
         "\n"
         "Writes KIND_template.yaml into the working directory (over an older one).\n"
         "KIND: concurrency, eval, offline, online, submission.\n";
}

ExitCode info_command(const Words& words) {
  if (!words.empty()) {
    return usage_error(fmt::format("info takes no argument, got \"{}\"", words[0]), "info");
  }
  base::log_info("info", info_text());
  return ExitCode::kOk;
}

ExitCode eval_command(const Words& words) {
  static_cast<void>(words);
  base::log_error(
      "eval",
      "Accuracy evaluation is not yet implemented. As a command, that is: `tutti benchmark "
      "from-config -c FILE --mode acc` asks and scores accuracy data sets.");
  return ExitCode::kUsage;
}

ExitCode validate_yaml_command(const Words& words) {
  const auto path = single_option(words, "--config", "-c");
  if (!path) {
    return usage_error("validate-yaml needs -c FILE and nothing else", "validate-yaml");
  }
  base::log_info("validate", "Validating: " + *path);
  const auto reading = spec::read_config_file(*path, spec::process_environment);
  if (!reading) {
    for (const auto& warning : reading.error().warnings) {
      base::log_warning("validate", spec::to_text(warning));
    }
    base::log_error("validate", "Validation failed");
    base::log_error("validate",
                    "Config validation failed:\n" + spec::to_text(reading.error().problems));
    return ExitCode::kInput;
  }
  for (const auto& warning : reading->warnings) {
    base::log_warning("validate", spec::to_text(warning));
  }
  const spec::Config& config = reading->config;
  base::log_info("validate", "Config valid: " + config.name);
  base::log_info("validate", "  Type: " + python_enum(config.type));
  base::log_info("validate", fmt::format("  Datasets: {}", config.datasets.size()));
  if (config.submission_ref.present) {
    base::log_info("validate",
                   fmt::format("  Submission: model={}, ruleset={}", config.submission_ref.model,
                               config.submission_ref.ruleset));
  }
  return ExitCode::kOk;
}

ExitCode init_command(const Words& words) {
  auto kind = single_option(words, "--template", "--template");
  if (!kind && words.size() == 1 && words[0].rfind('-', 0) != 0) {
    kind = words[0];
  }
  if (!kind) {
    return usage_error("init needs one KIND", "init");
  }
  const auto text = spec::template_yaml(*kind);
  if (!text) {
    base::log_error("init", fmt::format("Unknown template type: {}. Available: {}", *kind,
                                        fmt::join(spec::template_kinds(), ", ")));
    return ExitCode::kInput;
  }
  const std::string file = *kind + "_template.yaml";
  if (std::filesystem::exists(file)) {
    base::log_warning("init", fmt::format("File exists: {} (will be overwritten)", file));
  }
  std::ofstream out(file, std::ios::trunc);
  out << *text;
  out.close();
  if (!out) {
    base::log_error("init", fmt::format("Failed to create template: {} cannot be written", file));
    return ExitCode::kSetup;
  }
  base::log_info("init", "Created: " + file);
  return ExitCode::kOk;
}

}  // namespace tutti
