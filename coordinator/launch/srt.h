#pragma once

// What srt-slurm gives a client and wants from it: frontends and listening agents from its
// variables, benchmark-rollup.json for its monitor, a window file for its power telemetry.
// Texts in, texts out. Pure.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/text/json_read.h"

namespace tutti::launch {

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// MLPERF_ENDPOINTS (commas), else http://SRT_FRONTEND_HOST:SRT_FRONTEND_PORT (8000). A missing
// scheme becomes http://. kUsage when neither is set.
base::Result<std::vector<std::string>> srt_frontends(const Environment& environment);
std::vector<std::string> with_scheme(const std::vector<std::string>& addresses);

// The agents of a pool service named "agents": one tcp:// address for each of
// SRT_SERVICE_AGENTS_IPS, at TUTTI_AGENT_PORT (5870). Empty when there is no such pool.
base::Result<std::vector<std::string>> srt_agents(const Environment& environment);

// How far a run is; what the rollup says while it lasts.
struct LiveCounts {
  std::string phase;
  std::uint64_t completed = 0;  // failures included
  std::uint64_t failed = 0;
  double elapsed_s = 0;
};

struct RollupFacts {
  std::string timestamp;  // ISO 8601, Z
  std::string mode;       // perf, acc, both
  std::string client_config;
  std::string report_dir;
  std::vector<std::string> endpoints;
  std::string state;  // "starting", "running", "ended"
  std::optional<std::int64_t> exit_code;
  std::optional<LiveCounts> live;
  std::vector<std::string> report_files;
  std::optional<text::JsonValue> summary;   // performance/result_summary.json
  std::optional<text::JsonValue> accuracy;  // accuracy/accuracy_results.json
};
std::string rollup_json(const RollupFacts& facts);

// One measured point. Instants in unix seconds of the coordinator's host.
struct Window {
  std::string result_path;  // relative to the log folder; its stem is the window file's
  std::int64_t concurrency = 0;
  double start_unix_s = 0;
  std::optional<double> end_unix_s;  // with `status` running: none
  std::string status;                // running, completed, failed, interrupted
  std::optional<std::string> reason;
};
std::string window_json(const Window& window);

// 2026-10-02T10:00:00Z
std::string utc_seconds(std::int64_t unix_ns);

}  // namespace tutti::launch
