#include "coordinator/report/rebuild.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

#include "common/wire/codec.h"
#include "common/wire/spool_file.h"
#include "coordinator/report/run_note.h"

namespace tutti::report {
namespace {

constexpr std::size_t kDamageLines = 20;

std::string count_of(std::uint64_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

// First pass: everything but the records.
class Surveyor {
 public:
  base::Status read(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      auto scan = wire::read_spool(path, [&](const wire::SpoolFrame& frame) { take(frame); });
      if (!scan) {
        return tl::unexpected(scan.error());
      }
      damage_.insert(damage_.end(), scan->skipped.begin(), scan->skipped.end());
    }
    return {};
  }

  // The run meant, or why there is none.
  base::Result<base::Id> choose(const std::string& wanted) const {
    std::string found;
    std::optional<base::Id> chosen;
    for (const auto& [run, agents] : runs_) {
      found += fmt::format("\n  {}: {}{}", run.hex(), count_of(agents.size(), "agent", "agents"),
                           started(run));
      if (runs_.size() == 1 || run.hex() == wanted) {
        chosen = run;
      }
    }
    if (runs_.empty()) {
      return base::fail(base::ExitCode::kInput,
                        "no spooled batch or note is here; name the --spool-dir folders of the "
                        "run's agents");
    }
    if (!wanted.empty() && (!chosen || chosen->hex() != wanted)) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("run {} is not in these spools; they hold{}", wanted, found));
    }
    if (!chosen) {
      return base::fail(
          base::ExitCode::kInput,
          fmt::format("these spools are of several runs; choose one with --run:{}", found));
    }
    return *chosen;
  }

  base::Result<SpoolSurvey> finish(const base::Id& run) {
    const auto note = notes_.find(run);
    if (note == notes_.end()) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("no spool of run {} holds the note that tells its phases and "
                                    "frontends; give all of its agents' spools",
                                    run.hex()));
    }
    auto planned = read_run_note(note->second);
    if (!planned) {
      return tl::unexpected(planned.error());
    }
    if (planned->run != run) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("the note in the spools of run {} is of another run, {}",
                                    run.hex(), planned->run.hex()));
    }
    SpoolSurvey out;
    out.planned = std::move(*planned);
    for (auto& [number, seen] : runs_[run]) {
      seen.agent.batches = seen.batches.size();
      seen.agent.newest = seen.batches.empty() ? 0 : *seen.batches.rbegin();
      out.agents.emplace(number, std::move(seen.agent));
    }
    out.damage = std::move(damage_);
    return out;
  }

 private:
  // When the run began, so that a person knows which one is meant.
  std::string started(const base::Id& run) const {
    const auto note = notes_.find(run);
    if (note == notes_.end()) {
      return "";
    }
    const auto facts = read_run_note(note->second);
    const std::int64_t wall_s = facts ? facts->started_wall_ns / 1'000'000'000 : 0;
    return facts ? fmt::format(", started {:%F %T} UTC", fmt::gmtime(std::time_t{wall_s})) : "";
  }

  struct Seen {
    SpooledAgent agent;
    std::set<std::uint64_t> batches;
  };

  void take(const wire::SpoolFrame& frame) {
    if (frame.agent > ledger::kAgentMax) {
      damage_.push_back(fmt::format("a frame of agent number {}: there is none", frame.agent));
      return;
    }
    Seen& seen = runs_[frame.run][frame.agent];
    if (frame.number != wire::kSpoolNote) {
      seen.batches.insert(frame.number);
      return;
    }
    auto note = wire::decode(wire::Plane::kControl, frame.bytes);
    if (!note) {
      damage_.push_back(fmt::format("a note of agent number {} is not readable: {}", frame.agent,
                                    note.error().message));
      return;
    }
    if (auto* hello = std::get_if<wire::Hello>(&*note)) {
      seen.agent.hello = std::move(*hello);
    } else if (auto* prepare = std::get_if<wire::Prepare>(&*note)) {
      notes_.emplace(frame.run, std::move(prepare->run_note));
    } else if (const auto* arm = std::get_if<wire::ArmPhase>(&*note)) {
      seen.agent.armed[arm->phase] = *arm;
    } else if (const auto* drained = std::get_if<wire::Drained>(&*note)) {
      seen.agent.drained[drained->phase] = *drained;
    } else if (auto* goodbye = std::get_if<wire::Goodbye>(&*note)) {
      seen.agent.last_word = std::move(goodbye->reason);
    }
  }

  std::map<base::Id, std::map<std::uint32_t, Seen>> runs_;
  std::map<base::Id, std::string> notes_;
  std::vector<std::string> damage_;
};

// What the merged records tell.
struct Merged {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> records;  // (agent, phase)
  std::vector<base::Seq> seqs_end;                                           // by phase
  std::vector<base::Instant> last_done_at;  // by phase, coordinator's clock
};

Merged look_at(const ledger::Ledger& ledger, std::size_t phases) {
  Merged out;
  out.seqs_end.resize(phases);
  out.last_done_at.resize(phases);
  for (std::uint64_t i = 0; i < ledger.size(); ++i) {
    const ledger::Fact& fact = ledger.fact(i);
    ++out.records[{fact.agent, fact.phase}];
    if (fact.phase < phases) {
      auto& end = out.seqs_end[fact.phase];
      end = std::max<base::Seq>(end, base::Seq{fact.seq} + 1);
      auto& last = out.last_done_at[fact.phase];
      last = std::max(last, ledger.to_coordinator(fact, fact.done_at));
    }
  }
  return out;
}

base::Status merge(const SpoolSurvey& survey, ledger::Ledger& ledger, RunFacts& facts) {
  base::Status status;
  const auto take = [&](const wire::SpoolFrame& frame) {
    if (!status || frame.run != survey.planned.run || frame.number == wire::kSpoolNote ||
        survey.agents.count(frame.agent) == 0) {
      return;
    }
    const auto message = wire::decode(wire::Plane::kData, frame.bytes);
    const auto* batch = message ? std::get_if<wire::RecordBatch>(&*message) : nullptr;
    if (batch == nullptr || batch->number != frame.number) {
      facts.rebuilt.push_back(fmt::format(
          "Left out: batch {} of agent number {}, which does not decode ({})", frame.number,
          frame.agent, message ? "not the batch its frame names" : message.error().message));
      return;
    }
    if (auto accepted = ledger.accept(frame.agent, *batch); !accepted) {
      status = tl::unexpected(accepted.error());
    }
  };
  for (const std::string& path : survey.paths) {
    if (auto scan = wire::read_spool(path, take); !scan) {
      return tl::unexpected(scan.error());
    }
  }
  return status;
}

void put_agents(const SpoolSurvey& survey, ledger::Ledger& ledger, RunFacts& facts) {
  if (!survey.agents.empty()) {
    const std::size_t most = std::size_t{survey.agents.rbegin()->first} + 1;
    facts.agents.resize(std::max(facts.agents.size(), most));
  }
  for (std::uint32_t i = 0; i < facts.agents.size(); ++i) {
    AgentFacts& out = facts.agents[i];
    const auto known = survey.agents.find(i);
    out.name = fmt::format("number {}{}", i, known == survey.agents.end() ? " (no spool)" : "");
    if (known == survey.agents.end()) {
      continue;
    }
    const SpooledAgent& agent = known->second;
    if (agent.hello) {
      out.name = agent.hello->agent_name;
      out.host = agent.hello->host;
      out.version = agent.hello->software_version;
      out.workers = agent.hello->workers;
      out.fd_limit = agent.hello->fd_limit;
      out.ephemeral_ports = agent.hello->ephemeral_ports;
    }
    for (const auto& [phase, arm] : agent.armed) {
      // The newest stands: one map for the whole run, as the coordinator would take it.
      ledger.set_clock(i, {arm.coordinator_start_at - arm.start_at, arm.clock_error});
      if (arm.kind == base::PhaseKind::kPerformance) {
        out.slots = arm.slots;
      }
    }
  }
}

// Phases that were armed, or of which there are records. One has ended when a later one was armed.
void put_phases(const SpoolSurvey& survey, const Merged& merged, RunFacts& facts) {
  std::size_t begun = 0;
  for (const auto& [number, agent] : survey.agents) {
    for (const auto& [phase, arm] : agent.armed) {
      if (phase < facts.phases.size()) {
        facts.phases[phase].start_at = arm.coordinator_start_at;
        begun = std::max<std::size_t>(begun, phase + 1);
      }
    }
  }
  for (std::size_t phase = 0; phase < facts.phases.size(); ++phase) {
    if (merged.seqs_end[phase] > 0) {
      begun = std::max(begun, phase + 1);
    }
    facts.phases[phase].issued = merged.seqs_end[phase];
    facts.ended_at = std::max(facts.ended_at, merged.last_done_at[phase]);
  }
  facts.phases.resize(begun);
  for (std::size_t phase = 0; phase + 1 < begun; ++phase) {
    facts.phases[phase].stop_at = merged.last_done_at[phase];
  }
}

// One sentence on what an agent's spool holds, and what it leaves open.
std::string tell(const AgentFacts& facts, std::uint32_t number, const SpooledAgent& agent,
                 const Merged& merged, const std::vector<PhaseFacts>& phases) {
  std::uint64_t records = 0;
  for (const auto& [of, count] : merged.records) {
    records += of.first == number ? count : 0;
  }
  std::string out = fmt::format("Agent {}: {}, {} of {} up to number {}", facts.name,
                                count_of(records, "record", "records"), agent.batches,
                                count_of(agent.newest, "batch", "batches"), agent.newest);
  if (agent.batches < agent.newest) {
    out += "; the others were given up for room, damaged, or are in a file that is not here";
  }
  std::uint64_t last_batch = 0;
  for (const auto& [phase, drained] : agent.drained) {
    last_batch = std::max(last_batch, drained.last_batch);
    const auto here = merged.records.find({number, phase});
    const std::uint64_t have = here == merged.records.end() ? 0 : here->second;
    if (drained.started > have) {
      out += fmt::format("; of phase {} it started {} of which no record is here",
                         phase < phases.size() ? phases[phase].name : std::to_string(phase),
                         count_of(drained.started - have, "query", "queries"));
    }
  }
  if (last_batch > agent.newest) {
    out +=
        fmt::format("; batches {} to {} were made and are not here", agent.newest + 1, last_batch);
  }
  const bool counted = agent.armed.empty() || agent.drained.count(agent.armed.rbegin()->first) != 0;
  out +=
      agent.last_word.empty()
          ? "; it left no last word (it was killed, or still ran, or had no room): what it had "
            "in flight is not known"
          : fmt::format("{}; it ended because: {}",
                        counted ? "" : "; how much it had started is not known", agent.last_word);
  return out;
}

void put_sentences(const SpoolSurvey& survey, const ledger::Ledger& ledger, const Merged& merged,
                   RunFacts& facts) {
  std::vector<std::string>& out = facts.rebuilt;
  for (std::uint32_t i = 0; i < facts.agents.size(); ++i) {
    const auto known = survey.agents.find(i);
    out.push_back(known == survey.agents.end()
                      ? fmt::format("Agent number {}: no spool of it is here; what it did is not "
                                    "known",
                                    i)
                      : tell(facts.agents[i], i, known->second, merged, facts.phases));
  }
  for (std::uint32_t i = 0; i < facts.phases.size(); ++i) {
    const std::uint64_t open = ledger.missing_count(i, facts.phases[i].issued);
    if (open == 0) {
      continue;
    }
    out.push_back(fmt::format(
        "Phase {}: {} below the highest recorded one {} no record; whether {} ever issued only the "
        "coordinator knew",
        facts.phases[i].name, count_of(open, "query", "queries"), open == 1 ? "has" : "have",
        open == 1 ? "it was" : "they were"));
  }
  for (std::size_t i = 0; i < std::min(survey.damage.size(), kDamageLines); ++i) {
    out.push_back("Damage: " + survey.damage[i]);
  }
  if (survey.damage.size() > kDamageLines) {
    out.push_back(fmt::format("Damage: {} more such places", survey.damage.size() - kDamageLines));
  }
}

}  // namespace

base::Result<SpoolSurvey> survey_spools(const std::vector<std::string>& paths,
                                        const std::string& run) {
  Surveyor surveyor;
  if (auto status = surveyor.read(paths); !status) {
    return tl::unexpected(status.error());
  }
  const auto chosen = surveyor.choose(run);
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  auto survey = surveyor.finish(*chosen);
  if (survey) {
    survey->paths = paths;
  }
  return survey;
}

base::Result<Rebuilt> rebuild(const SpoolSurvey& survey, const std::string& folder) {
  auto opened = ledger::Ledger::open(folder);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  Rebuilt out{survey.planned, std::move(*opened)};
  RunFacts& facts = out.facts;
  put_agents(survey, out.ledger, facts);
  if (auto status = merge(survey, out.ledger, facts); !status) {
    return tl::unexpected(status.error());
  }
  const Merged merged = look_at(out.ledger, facts.phases.size());
  facts.ended_at = facts.started_at;
  put_phases(survey, merged, facts);
  put_sentences(survey, out.ledger, merged, facts);
  facts.state = RunState::kInterrupted;
  facts.watchdogs.push_back(
      fmt::format("the coordinator was lost; this was rebuilt from the spools of {} of {} agents",
                  survey.agents.size(), facts.agents.size()));
  return out;
}

}  // namespace tutti::report
