#include "coordinator/report/run_folder.h"

#include <map>
#include <utility>
#include <vector>

#include "common/text/json_write.h"
#include "coordinator/report/atomic_file.h"
#include "coordinator/report/client_report.h"
#include "coordinator/report/events.h"

namespace tutti::report {
namespace {

base::Status write_event_file(const RunFacts& facts, const ledger::Ledger& ledger,
                              const PromptSource& prompts, const std::string& path) {
  auto file = AtomicFile::create(path);
  if (!file) {
    return tl::unexpected<base::Error>(file.error());
  }
  const auto sink = [&](std::string_view lines) { file->append(lines); };
  if (auto written = write_events(facts, ledger, prompts, sink); !written) {
    return written;
  }
  return file->commit();
}

}  // namespace

std::string sample_idx_map_json(const RunFacts& facts, const ledger::Ledger& ledger,
                                const PromptSource& prompts) {
  std::vector<std::string> names;
  std::map<std::uint32_t, std::size_t> name_of;  // phase → index into names
  for (std::uint32_t phase = 0; phase < facts.phases.size(); ++phase) {
    if (facts.phases[phase].kind == base::PhaseKind::kWarmup) {
      continue;
    }
    std::size_t i = 0;
    while (i < names.size() && names[i] != facts.phases[phase].name) {
      ++i;
    }
    if (i == names.size()) {
      names.push_back(facts.phases[phase].name);
    }
    name_of[phase] = i;
  }
  std::string out;
  text::JsonWriter json(out);
  json.begin_object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    json.key(names[i]).begin_object();
    for (const auto& [phase, name] : name_of) {
      if (name != i) {
        continue;
      }
      // In seq order, so that the same run gives the same bytes however its records arrived.
      for (base::Seq seq = 0; seq < facts.phases[phase].issued; ++seq) {
        const ledger::Fact* fact = ledger.find(phase, seq);
        if (fact == nullptr && ledger.is_withheld(static_cast<std::uint32_t>(phase), seq)) {
          continue;
        }
        const auto sample = fact != nullptr ? std::optional<base::SampleIndex>(fact->sample)
                                            : prompts.sample_of(phase, seq);
        if (sample) {
          json.key(base::query_id(facts.run, phase, seq))
              .unsigned_integer(*sample - facts.phases[phase].first_row);
        }
      }
    }
    json.end_object();
  }
  json.end_object();
  out += '\n';
  return out;
}

base::Status write_run_folder(const Report& report, const ledger::Ledger& ledger,
                              const PromptSource& prompts, const std::string& folder) {
  base::Status first;
  const auto note = [&](base::Status status) {
    if (!status && first) {
      first = std::move(status);
    }
  };
  note(write_event_file(report.facts, ledger, prompts, folder + "/events.jsonl"));
  note(write_atomically(folder + "/sample_idx_map.json",
                        sample_idx_map_json(report.facts, ledger, prompts)));
  note(write_atomically(folder + "/metrics/final_snapshot.json", snapshot_json(report.snapshot)));
  if (report.has_performance_phase()) {
    note(
        write_atomically(folder + "/performance/result_summary.json", result_summary_json(report)));
  }
  note(write_atomically(folder + "/performance/client_health.csv", client_health_csv(report)));
  if (!report.accuracy.empty()) {
    note(write_atomically(folder + "/accuracy/accuracy_results.json",
                          accuracy::results_json(report.accuracy)));
  }
  if (!report.turn_scores.empty()) {
    note(write_atomically(folder + "/scores.json", report.turn_scores));
  }
  note(write_atomically(folder + "/report.txt", report_text(report)));
  return first;
}

}  // namespace tutti::report
