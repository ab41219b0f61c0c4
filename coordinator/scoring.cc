#include "coordinator/scoring.h"

#include <fmt/format.h>

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

accuracy::Entry score_dataset(const conduct::AccuracyInput& wanted,
                              const conduct::RunOutcome& outcome) {
  accuracy::Entry entry;
  entry.dataset_name = wanted.name;
  entry.extractor = accuracy::class_name(wanted.method.extractor);
  if (wanted.method.truth_column_is_given) {
    entry.ground_truth_column = wanted.method.truth_column;
  }
  entry.unit_samples = wanted.dataset.rows.size();
  entry.num_repeats = wanted.repeats;
  if (wanted.phase >= outcome.phases.size()) {
    entry.note = "not asked: the run ended before its phase";
    return entry;
  }
  const report::PhaseFacts& phase = outcome.phases[wanted.phase];
  const base::Instant end = phase.stop_at.is_set() ? phase.stop_at : outcome.ended_at;
  entry.duration_s = (end - phase.start_at).to_seconds();
  accuracy::Tally tally(wanted.method);
  const bool read = add_replies(wanted, phase, outcome.ledger, tally);
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
  entry.complete = outcome.outcome.complete && scored && phase.stop_at.is_set() &&
                   entry.responses.issued == entry.total_samples() && entry.responses.missing == 0;
  return entry;
}

}  // namespace

accuracy::Entries score_run(const conduct::RunInput& input, const conduct::RunOutcome& outcome) {
  accuracy::Entries out;
  for (const conduct::AccuracyInput& wanted : input.accuracy) {
    out.push_back(score_dataset(wanted, outcome));
    base::log_info("accuracy", accuracy::score_line(out.back()));
    if (const std::string& note = out.back().note; !note.empty()) {
      base::log_warning("accuracy", fmt::format("{}: {}", wanted.name, note));
    }
  }
  return out;
}

}  // namespace tutti
