#include "coordinator/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "common/base/log.h"
#include "coordinator/accuracy/tally.h"
#include "coordinator/accuracy/turn_scores.h"
#include "coordinator/conduct/conversation_input.h"
#include "coordinator/conduct/punkt_files.h"
#include "coordinator/report/report.h"

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
  conduct::Punkt punkt = nullptr;  // what ROUGE finds sentences by; null: it does without
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
  accuracy::Tally tally(wanted.method, scene.punkt.get());
  const bool read = add_replies(wanted, phase, scene.ledger, tally);
  entry.responses = tally.counts();
  entry.note = read ? tally.problem() : "a reply could not be read back from disk";
  const bool scored = entry.note.empty();
  if (scored) {
    entry.score = tally.score();
    entry.rouge = tally.rouge_score();
  }
  if (entry.rouge && !entry.rouge->sentences) {
    entry.note =
        "rougeLsum and gen_len need NLTK's punkt_tab/english, which was not here: for the next run "
        "python3 -m nltk.downloader punkt_tab; this one's replies are in events.jsonl";
  }
  entry.complete = scene.complete && scored && phase.stop_at.is_set() &&
                   entry.responses.issued == entry.total_samples() && entry.responses.missing == 0;
  return entry;
}

void add_lengths(std::uint32_t phase, const Scene& scene, const LengthTerms& terms,
                 accuracy::Entry& entry) {
  const base::SystemClock clock;
  ReplyLengths lengths =
      reply_lengths(scene.ledger, phase, scene.phases[phase].issued, terms, clock);
  if (!lengths.problem.empty()) {
    base::log_warning("accuracy", fmt::format("{}: output lengths were not counted: {}",
                                              entry.dataset_name, lengths.problem));
    return;
  }
  const stats::SeriesStat stat = lengths.tokens.stat(false);
  if (stat.count > 0) {
    entry.lengths = {stat.avg, static_cast<std::int64_t>(stats::to_double(stat.min)),
                     static_cast<std::int64_t>(stats::to_double(stat.max)),
                     report::series_json(stat), lengths.took.to_seconds()};
  }
}

void tell(const accuracy::Entry& entry) {
  base::log_info("accuracy", accuracy::score_line(entry));
  if (!entry.note.empty()) {
    base::log_warning("accuracy", fmt::format("{}: {}", entry.dataset_name, entry.note));
  }
}

// Of one turn that was issued. False: its reply could not be read back.
bool add_turn(const data::Conversation& conversation, accuracy::TurnName name,
              const ledger::Fact* fact, const ledger::Ledger& ledger,
              accuracy::TurnScores& scores) {
  const bool workflow = accuracy::is_workflow(conversation.id);
  const std::size_t answer_row = name.turn - 1;  // a client's turn is never followed by another
  const auto truth = answer_row < conversation.rows.size()
                         ? accuracy::truth_of(workflow, conversation.rows[answer_row].cells)
                         : std::nullopt;
  if (!truth) {
    scores.add_excluded(std::move(name));
    return true;
  }
  if (fact == nullptr || !fact->ok()) {
    scores.add_missing(std::move(name), *truth);
    return true;
  }
  ledger::Texts texts;
  if (auto read = ledger.texts(*fact, texts); !read) {
    base::log_error("accuracy", read.error().message);
    return false;
  }
  const wire::OutputText& output = texts.output;
  scores.add(std::move(name), *truth,
             accuracy::answer_of(workflow, output.reasoning_first + output.reasoning_rest,
                                 output.content_first + output.content_rest, output.tool_calls));
  return true;
}

accuracy::Entry turns_entry(std::uint64_t rows) {
  accuracy::Entry entry;
  entry.dataset_name = "performance";
  entry.of_performance = true;
  entry.unit_samples = rows;
  return entry;
}

// Of the turns in a phase: which conversation is played as which query, and how far it came.
struct TurnScene {
  const data::ConversationSet& conversations;
  const plan::Trajectories& trajectories;
  std::uint32_t phase = 0;
  bool recorded_only = false;  // of a turn without a record nobody knows whether it was issued
};

// Adds all turns. Returns why they cannot be compared; empty: they were.
std::string add_turns(const TurnScene& turns, const Scene& scene, accuracy::TurnScores& scores) {
  const plan::Trajectories& all = turns.trajectories;
  const base::Seq issued = scene.phases[turns.phase].issued;
  if (issued > all.queries()) {
    return "the data set's conversations are not those of the run";
  }
  for (base::Seq seq = 0; seq < issued; ++seq) {
    const ledger::Fact* const fact = scene.ledger.find(turns.phase, seq);
    if (scene.ledger.is_withheld(turns.phase, seq) || (turns.recorded_only && fact == nullptr)) {
      continue;
    }
    const plan::Trajectories::Place place = all.place_of(seq);
    const plan::Conversation& played = all.conversation(place.trajectory);
    const plan::Turn& turn = played.turns[place.turn];
    if (fact != nullptr && fact->sample != turn.sample) {
      return "the data set's conversations are not those of the run";
    }
    const auto& sample = turns.conversations.samples()[turn.sample];
    const auto& recorded = turns.conversations.conversations()[sample.conversation];
    if (!add_turn(recorded, {played.id, all.pass(place.trajectory), turn.number + 1}, fact,
                  scene.ledger, scores)) {
      return "a reply could not be read back from disk";
    }
  }
  return {};
}

// The turns of the performance phase, against those recorded.
void add_turn_scores(const TurnScene& turns, const Scene& scene, Scores& out) {
  accuracy::Entry& entry =
      out.entries.emplace_back(turns_entry(turns.conversations.samples().size()));
  if (turns.phase >= scene.phases.size()) {
    entry.note = "not asked: the run ended before its phase";
    return;
  }
  const report::PhaseFacts& phase = scene.phases[turns.phase];
  accuracy::TurnScores scores;
  entry.note = add_turns(turns, scene, scores);
  const base::Instant end = phase.stop_at.is_set() ? phase.stop_at : scene.ended_at;
  entry.duration_s = (end - phase.start_at).to_seconds();
  entry.responses = {scores.issued(), scores.scored() - scores.missing(), 0, scores.missing()};
  if (!entry.note.empty()) {
    return;
  }
  entry.score = scores.score();
  entry.complete = scene.complete && phase.stop_at.is_set() && scores.missing() == 0;
  if (scores.scored() < scores.issued()) {
    entry.note = fmt::format("{} of {} turns have no recorded answer to compare with",
                             scores.issued() - scores.scored(), scores.issued());
  }
  out.turns = scores.json();
}

// As many as there are: none.
std::uint32_t first_of(base::PhaseKind kind, const std::vector<report::PhaseFacts>& phases) {
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [kind](const auto& phase) { return phase.kind == kind; });
  return static_cast<std::uint32_t>(found - phases.begin());
}

void score_turns_again(const spec::Config& config, const Scene& scene, Scores& out) {
  const auto played = conduct::play_again(config);
  if (!played) {
    out.entries.push_back(turns_entry(0));
    out.entries.back().note = "its recorded turns cannot be read: " + played.error().message;
  } else {
    add_turn_scores({*played->conversations, *played->trajectories,
                     first_of(base::PhaseKind::kPerformance, scene.phases), true},
                    scene, out);
    std::string& note = out.entries.back().note;
    note += fmt::format("{}of the turns in the spools; what nobody recorded is not counted",
                        note.empty() ? "" : "; ");
  }
  tell(out.entries.back());
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

Scores score_run(const conduct::RunInput& input, const conduct::RunOutcome& outcome,
                 const LengthTerms& lengths) {
  const Scene scene{outcome.phases, outcome.ledger, outcome.ended_at, outcome.outcome.complete,
                    input.punkt};
  Scores out;
  if (input.scores_turns) {
    const auto planned = std::find_if(
        input.phases.begin(), input.phases.end(),
        [](const auto& phase) { return phase.spec.kind == base::PhaseKind::kPerformance; });
    add_turn_scores({*input.conversations, *planned->spec.trajectories,
                     static_cast<std::uint32_t>(planned - input.phases.begin())},
                    scene, out);
    tell(out.entries.back());
  }
  for (const conduct::AccuracyInput& wanted : input.accuracy) {
    accuracy::Entry& entry = out.entries.emplace_back(score_dataset(wanted, scene));
    if (wanted.phase < scene.phases.size()) {
      add_lengths(wanted.phase, scene, lengths, entry);
    }
    tell(entry);
  }
  return out;
}

Scores score_rebuilt(const spec::Config& given, const report::Rebuilt& run) {
  const spec::Config config = as_it_ran(given);
  Scene scene{run.facts.phases, run.ledger, run.facts.ended_at, false};
  Scores out;
  // Whether it ran in a mode that played them is in the phases, not in the config.
  const auto has = [&scene](base::PhaseKind kind) {
    return first_of(kind, scene.phases) < scene.phases.size();
  };
  if (has(base::PhaseKind::kPerformance) && accuracy::scores_turns(config, spec::RunMode::kBoth)) {
    score_turns_again(config, scene, out);
  }
  if (!has(base::PhaseKind::kAccuracy)) {
    return out;
  }
  const auto scored = accuracy::choose_methods(config, spec::RunMode::kAcc);
  if (!scored) {
    base::log_warning("accuracy", "not scored:\n" + spec::to_text(scored.error()));
    return out;
  }
  if (std::any_of(scored->begin(), scored->end(), [](const accuracy::Scored& each) {
        return each.method.rule == accuracy::Rule::kRouge;
      })) {
    scene.punkt = conduct::load_punkt().value_or(nullptr);
  }
  for (const accuracy::Scored& each : *scored) {
    out.entries.push_back(score_again(config, each, scene));
    tell(out.entries.back());
  }
  return out;
}

}  // namespace tutti
