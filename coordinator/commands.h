#pragma once

// The subcommands of `tutti`. Each takes the words after its name and returns the process's exit
// code (docs/operating.md). They print: lines of the log on stdout, usage problems on stderr.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "coordinator/conduct/run_host.h"

namespace tutti {

using Words = std::vector<std::string>;

base::ExitCode benchmark_command(const Words& words);
// The same, telling `watch` how far it is.
base::ExitCode watched_benchmark(const Words& words, const conduct::PhaseWatch& watch);
base::ExitCode slurm_command(const Words& words);
base::ExitCode srt_command(const Words& words);
base::ExitCode probe_command(const Words& words);
base::ExitCode calibrate_command(const Words& words);
base::ExitCode info_command(const Words& words);
base::ExitCode validate_yaml_command(const Words& words);
base::ExitCode init_command(const Words& words);
base::ExitCode eval_command(const Words& words);
base::ExitCode keys_command(const Words& words);
base::ExitCode report_command(const Words& words);

// Texts of `--help`.
std::string general_help();
std::string probe_help();
std::string calibrate_help();
std::string slurm_help();
std::string srt_help();
std::string info_help();
std::string validate_yaml_help();
std::string init_help();
std::string keys_help();
std::string report_help();

// Prints "Error: …" and where to read more on stderr; returns kUsage.
base::ExitCode usage_error(const std::string& text, const std::string& command);

}  // namespace tutti
