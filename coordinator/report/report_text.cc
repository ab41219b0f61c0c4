#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/text/json_write.h"
#include "coordinator/report/own_sections.h"
#include "coordinator/report/report.h"

namespace tutti::report {
namespace {

constexpr std::int64_t kBarMax = 30;

// Values of the run's configuration are shown as Python shows them.
std::string python(bool value) { return value ? "True" : "False"; }
std::string python(double value) {
  std::string out;
  text::append_json_double(out, value);
  return out;
}
std::string python(std::int64_t value) { return std::to_string(value); }
std::string python(std::uint64_t value) { return std::to_string(value); }
template <class T>
std::string python(const std::optional<T>& value) {
  return value ? python(*value) : "None";
}

void put_run_config(std::string& out, const ConfigFacts& config) {
  const LoadPatternFacts& pattern = config.load_pattern;
  const WarmupFacts& warmup = config.warmup;
  out += "Run config:\n";
  out += fmt::format("  load_pattern: type={}, target_qps={}, target_concurrency={}", pattern.type,
                     python(pattern.target_qps), python(pattern.target_concurrency));
  if (pattern.type == "poisson") {
    out +=
        fmt::format(", use_legacy_loadgen_qps_metrics={}", python(pattern.use_legacy_qps_window));
  }
  out += fmt::format(
      "\n  warmup: enabled={}, n_requests={}, salt={}, drain={}, warmup_random_seed={}\n",
      python(warmup.enabled), python(warmup.n_requests), python(warmup.salt), python(warmup.drain),
      python(warmup.random_seed));
  out += fmt::format("  scheduler_random_seed: {}\n  dataloader_random_seed: {}\n",
                     config.scheduler_random_seed, config.dataloader_random_seed);
}

void put_warning(std::string& out, const Report& report) {
  if (report.snapshot.complete()) {
    return;
  }
  if (!report.facts.rebuilt.empty()) {
    out +=
        "WARNING: rebuilt from the agents' spools, the coordinator was lost — metrics below are of "
        "the records that are here.\n";
  } else if (report.facts.interrupted_by_user) {
    out +=
        "WARNING: run was interrupted (SIGTERM/SIGINT) — metrics below are best-effort partial "
        "data.\n";
  } else if (report.snapshot.state == RunState::kInterrupted) {
    out +=
        "WARNING: run was stopped before its end — metrics below are best-effort partial data.\n";
  } else {
    out +=
        "WARNING: report is incomplete (drain timed out or no final snapshot received) — some "
        "async metrics may be missing.\n";
  }
}

std::string two_decimals(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "N/A";
}

void put_summary(std::string& out, const Report& report) {
  const Summary& summary = report.summary;
  out += "----------------- Summary -----------------\n";
  put_warning(out, report);
  if (report.facts.went_on) {
    out +=
        "WARNING: the run went on without agents that were lost (on_agent_loss: continue) — the "
        "load was smaller from then on.\n";
  }
  out += fmt::format("Version: {}\n", report.facts.version);
  put_run_config(out, report.facts.config);
  out += fmt::format("Total samples issued: {}\n", summary.n_issued);
  out += fmt::format("Total samples completed: {}\n", summary.n_completed);
  out += fmt::format("Total samples failed: {}\n", summary.n_failed);
  out += summary.duration_ns ? fmt::format("Duration: {:.2f} seconds\n",
                                           static_cast<double>(*summary.duration_ns) / 1e9)
                             : "Duration: N/A\n";
  out += fmt::format("QPS: {}\n", two_decimals(summary.qps));
  out += fmt::format("TPS: {}\n", two_decimals(summary.tps));
  out += accuracy::results_text(report.accuracy);
  put_verdict(out, report);
}

struct Unit {
  double scale = 1;
  const char* name = "";
};

void put_histogram(std::string& out, const stats::SeriesStat& stat, Unit unit) {
  std::vector<std::string> labels;
  std::size_t width = 0;
  std::uint64_t most = 1;
  for (std::size_t i = 0; i < stat.histogram.size(); ++i) {
    const stats::Bucket& bucket = stat.histogram[i];
    const char close = i + 1 == stat.histogram.size() ? ']' : ')';
    labels.push_back(
        fmt::format("[{:.2f}, {:.2f}{}", bucket.low * unit.scale, bucket.high * unit.scale, close));
    width = std::max(width, labels.back().size());
    most = std::max(most, bucket.count);
  }
  out += "\n  Histogram:\n";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::uint64_t count = stat.histogram[i].count;
    out += fmt::format("    {:>{}} |{} {}\n", labels[i], width,
                       std::string(count * kBarMax / most, '#'), count);
  }
}

void put_series(std::string& out, const char* title, const stats::SeriesStat& stat, Unit unit) {
  if (stat.count == 0) {
    return;
  }
  const auto line = [&](const char* name, double value) {
    out += fmt::format("  {}: {:.2f} {}\n", name, value * unit.scale, unit.name);
  };
  out += fmt::format("{}:\n", title);
  line("Min", stats::to_double(stat.min));
  line("Max", stats::to_double(stat.max));
  line("Median", stat.median());
  line("Avg.", stat.avg);
  line("Std Dev.", stat.std_dev);
  put_histogram(out, stat, unit);
  out += "\n  Percentiles:\n";
  for (std::size_t i = 0; i < stats::kPercentileGrid.size(); ++i) {
    out += fmt::format("  {:>6}: {:.2f} {}\n", stats::kPercentileGrid[i].key,
                       stat.percentiles[i] * unit.scale, unit.name);
  }
  if (stat.early_stopping) {
    out += "\n  Early-stopping percentile estimates (N/A = insufficient samples):\n";
    for (std::size_t i = 0; i < stats::kEarlyStoppingCount; ++i) {
      const std::optional<double>& estimate = (*stat.early_stopping)[i];
      out +=
          fmt::format("  {:>6}: {} {}\n", stats::kEarlyStoppingGrid[i].key,
                      estimate ? fmt::format("{:.2f}", *estimate * unit.scale) : "N/A", unit.name);
    }
  }
  out += "\n";
}

}  // namespace

std::string report_text(const Report& report) {
  constexpr Unit kMs{1e-6, "ms"};
  constexpr Unit kTokens{1, "tokens"};
  const Snapshot& snapshot = report.snapshot;
  std::string out;
  put_summary(out, report);
  out += "\n------------------- Latency Breakdowns -------------------\n";
  if (snapshot.streaming) {
    put_series(out, "TTFT", snapshot.ttft, kMs);
    put_series(out, "TPOT", snapshot.tpot, kMs);
  }
  put_series(out, "Latency", snapshot.latency, kMs);
  put_series(out, "Input sequence lengths", snapshot.isl, kTokens);
  put_series(out, "Output sequence lengths", snapshot.osl, kTokens);
  put_own_sections(out, report);
  out += "----------------- End of Report -----------------\n";
  return out;
}

std::string console_text(const Report& report) {
  std::string out;
  put_summary(out, report);
  out += "----------------- End of Summary -----------------\n";
  return out;
}

}  // namespace tutti::report
