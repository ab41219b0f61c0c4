#include "coordinator/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "common/base/log.h"
#include "coordinator/accuracy/tally.h"

namespace tutti {
namespace {

// What extractors get to see: reasoning first, then the output, then the tool calls.
std::string scored_text(const ledger::Texts& texts) {
  const wire::OutputText& output = texts.output;
  return output.reasoning_first + output.reasoning_rest + output.content_first +
         output.content_rest + output.tool_calls;
}

// False: a text could not be read back.
bool add_replies(const conduct::AccuracyInput& wanted, const report::PhaseFacts& phase,
                 const ledger::Ledger& ledger, accuracy::Tally& tally) {
  ledger::Texts texts;
  for (base::Seq seq = 0; seq < phase.issued; ++seq) {
    const ledger::Fact* const fact = ledger.find(wanted.phase, seq);
    const bool known = fact != nullptr && fact->sample >= phase.first_row &&
                       fact->sample - phase.first_row < wanted.dataset.truths.size();
    if (!known) {
      tally.add_missing();
      continue;
    }
    const text::JsonValue& truth = wanted.dataset.truths[fact->sample - phase.first_row];
    if (!fact->ok()) {
      tally.add(truth, "");
    } else if (auto read = ledger.texts(*fact, texts); read) {
      tally.add(truth, scored_text(texts));
    } else {
      base::log_error("accuracy", read.error().message);
      return false;
    }
  }
  return true;
}

// What is known of the run beside its data sets.
struct Scene {
  const std::vector<report::PhaseFacts>& phases;
  const ledger::Ledger& ledger;
  base::Instant ended_at;
  bool complete = false;
};

accuracy::Entry named_entry(const std::string& name, const accuracy::Method& method) {
  accuracy::Entry entry;
  entry.dataset_name = name;
  entry.extractor = accuracy::class_name(method.extractor);
  if (method.truth_column_is_given) {
    entry.ground_truth_column = method.truth_column;
  }
  return entry;
}

accuracy::Entry score_dataset(const conduct::AccuracyInput& wanted, const Scene& scene) {
  accuracy::Entry entry = named_entry(wanted.name, wanted.method);
  entry.unit_samples = wanted.dataset.rows.size();
  entry.num_repeats = wanted.repeats;
  if (wanted.phase >= scene.phases.size()) {
    entry.note = "not asked: the run ended before its phase";
    return entry;
  }
  const report::PhaseFacts& phase = scene.phases[wanted.phase];
  const base::Instant end = phase.stop_at.is_set() ? phase.stop_at : scene.ended_at;
  entry.duration_s = (end - phase.start_at).to_seconds();
  accuracy::Tally tally(wanted.method);
  const bool read = add_replies(wanted, phase, scene.ledger, tally);
  entry.responses = tally.counts();
  entry.note = read ? tally.problem() : "a reply could not be read back from disk";
  const bool scored = entry.note.empty();
  if (scored) {
    entry.score = tally.score();
    entry.rouge = tally.rouge_score();
  }
  if (entry.rouge) {
    entry.note = "rougeLsum and gen_len need NLTK's sentence splitter and are not computed";
  }
  entry.complete = scene.complete && scored && phase.stop_at.is_set() &&
                   entry.responses.issued == entry.total_samples() && entry.responses.missing == 0;
  return entry;
}

void tell(const accuracy::Entry& entry) {
  base::log_info("accuracy", accuracy::score_line(entry));
  if (!entry.note.empty()) {
    base::log_warning("accuracy", fmt::format("{}: {}", entry.dataset_name, entry.note));
  }
}

// A dumped config names what was called after its file; when the file is there it is the one that
// was read.
spec::Config as_it_ran(spec::Config config) {
  for (spec::DatasetSpec& dataset : config.datasets) {
    const std::filesystem::path path = dataset.path.value_or("");
    dataset.name_is_given = dataset.name_is_given && path.stem().string() != dataset.name;
  }
  return config;
}

// Which of the run's phases asked it; as many as there are: none.
std::uint32_t phase_of(const std::string& name, const std::vector<report::PhaseFacts>& phases) {
  const auto found = std::find_if(phases.begin(), phases.end(), [&](const auto& phase) {
    return phase.kind == base::PhaseKind::kAccuracy && phase.name == name;
  });
  return static_cast<std::uint32_t>(found - phases.begin());
}

accuracy::Entry score_again(const spec::Config& config, const accuracy::Scored& scored,
                            const Scene& scene) {
  const std::string& name = config.datasets[scored.dataset].name;
  auto input = conduct::read_accuracy_set(config, scored);
  if (!input) {
    accuracy::Entry entry = named_entry(name, scored.method);
    entry.note = "its right answers cannot be read: " + input.error().message;
    return entry;
  }
  input->phase = phase_of(name, scene.phases);
  accuracy::Entry entry = score_dataset(*input, scene);
  if (entry.note.empty()) {
    entry.note = "of what is in the spools; what nobody recorded is not counted";
  }
  return entry;
}

}  // namespace

accuracy::Entries score_run(const conduct::RunInput& input, const conduct::RunOutcome& outcome) {
  const Scene scene{outcome.phases, outcome.ledger, outcome.ended_at, outcome.outcome.complete};
  accuracy::Entries out;
  for (const conduct::AccuracyInput& wanted : input.accuracy) {
    out.push_back(score_dataset(wanted, scene));
    tell(out.back());
  }
  return out;
}

accuracy::Entries score_rebuilt(const spec::Config& given, const report::Rebuilt& run) {
  const spec::Config config = as_it_ran(given);
  const auto scored = accuracy::choose_methods(config, spec::RunMode::kAcc);
  if (!scored) {
    base::log_warning("accuracy", "not scored:\n" + spec::to_text(scored.error()));
    return {};
  }
  const Scene scene{run.facts.phases, run.ledger, run.facts.ended_at, false};
  accuracy::Entries out;
  for (const accuracy::Scored& each : *scored) {
    out.push_back(score_again(config, each, scene));
    tell(out.back());
  }
  return out;
}

}  // namespace tutti
