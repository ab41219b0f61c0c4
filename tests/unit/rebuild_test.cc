// A run rebuilt from its agents' spools: every batch once however the files come, damage costs only
// itself and is named, foreign runs are refused, and what nobody knows is said.

#include "coordinator/report/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "agent/record/spool.h"
#include "common/wire/codec.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_note.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using report_run::kMs;
using report_run::kOffset;
using report_run::kStart;
using report_run::ok_record;
using report_run::TempFolder;
using testing::Contains;
using testing::HasSubstr;

struct Written {
  base::Id run = report_run::facts().run;
  std::string note = run_note(report_run::facts());
};

wire::ArmPhase arm(std::uint32_t agent, std::uint32_t phase) {
  const auto planned = report_run::facts().phases[phase];
  wire::ArmPhase out;
  out.phase = phase;
  out.kind = planned.kind;
  out.slots = 2;
  out.coordinator_start_at = planned.start_at;
  out.start_at = planned.start_at - base::Duration{kOffset[agent]};
  out.clock_error = base::Duration::micros(40);
  return out;
}

// The spool of an agent that had ten queries of the performance phase, seqs `from`, `from` + 2 …,
// in batches of two. `last_word`: it left in order, having started one more.
void write_spool(const std::string& folder, std::uint32_t agent, base::Seq from, bool last_word,
                 const Written& written = {}) {
  auto spool = record::Spool::create(folder, written.run, agent);
  ASSERT_TRUE(spool);
  const auto note = [&](wire::Message message) {
    ASSERT_TRUE(spool->note(wire::encode(message).bytes));
  };
  wire::Hello hello;
  hello.agent_name = agent == 0 ? "one" : "two";
  hello.host = "host-" + hello.agent_name;
  note(hello);
  wire::Prepare prepare;
  prepare.run_note = written.note;
  note(prepare);
  note(arm(agent, 0));
  note(arm(agent, 1));
  for (std::uint64_t number = 1; number <= 5; ++number) {
    wire::RecordBatch batch;
    batch.number = number;
    for (base::Seq i = 2 * number - 2; i < 2 * number; ++i) {
      const base::Seq seq = from + 2 * i;
      const auto ms = static_cast<std::int64_t>(100 + seq * 10);
      batch.records.push_back(ok_record(agent, 1, seq, ms, ms + 5, ms + 50, 3));
    }
    batch.gaps = report_run::even_gaps(batch.records);
    ASSERT_TRUE(spool->append(number, wire::encode(wire::Message(batch)).bytes));
  }
  if (last_word) {
    note(wire::Drained{1, 11, 5});
    note(wire::Goodbye{"lost the coordinator: silence"});
  }
}

class RebuildTest : public testing::Test {
 protected:
  RebuildTest() {
    write_spool(one_, 0, 0, true);
    write_spool(two_, 1, 1, false);
  }

  // nullopt with the error in why_.
  std::optional<Rebuilt> rebuild_from(const std::vector<std::string>& paths,
                                      const std::string& run = "") {
    auto survey = survey_spools(paths, run);
    if (!survey) {
      why_ = survey.error().message;
      return std::nullopt;
    }
    std::filesystem::create_directories(temp_ / "out");
    auto rebuilt = rebuild(*survey, temp_ / "out");
    EXPECT_TRUE(rebuilt);
    return std::move(*rebuilt);
  }
  std::string only_file(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1U);
    return files.at(0);
  }

  TempFolder temp_;
  std::string one_ = temp_ / "one";
  std::string two_ = temp_ / "two";
  std::string why_;
};

TEST_F(RebuildTest, HoldsEveryRecordOnceWhateverIsGivenTwice) {
  const auto both = rebuild_from({one_, two_});
  const auto twice = rebuild_from({two_, one_, two_, only_file(one_)});
  ASSERT_TRUE(both && twice);
  for (const auto* it : {&*both, &*twice}) {
    EXPECT_EQ(it->ledger.stored(1), 20U);
    EXPECT_EQ(it->ledger.doubled_count(1), 0U);
    for (base::Seq seq = 0; seq < 20; ++seq) {
      const ledger::Fact* fact = it->ledger.find(1, seq);
      ASSERT_NE(fact, nullptr) << seq;
      EXPECT_EQ(fact->agent, seq % 2);
      EXPECT_EQ(it->ledger.to_coordinator(*fact, fact->issued_at).ns,
                kStart + static_cast<std::int64_t>(100 + seq * 10) * kMs);
    }
  }
  EXPECT_EQ(both->ledger.repeated_batches(), 0U);
  EXPECT_EQ(twice->ledger.repeated_batches(), 10U);
}

TEST_F(RebuildTest, KnowsTheRunAndSaysWhatItCannotKnow) {
  const auto rebuilt = rebuild_from({one_, two_});
  ASSERT_TRUE(rebuilt);
  const RunFacts& facts = rebuilt->facts;
  const RunFacts planned = report_run::facts();
  EXPECT_EQ(facts.run, planned.run);
  EXPECT_EQ(facts.config.endpoints, planned.config.endpoints);
  EXPECT_EQ(facts.config.load_pattern.target_concurrency, 4U);
  ASSERT_EQ(facts.phases.size(), 2U);
  EXPECT_EQ(facts.phases[1].name, "performance");
  EXPECT_EQ(facts.phases[1].start_at, planned.phases[1].start_at);
  EXPECT_FALSE(facts.phases[1].stop_at.is_set()) << "nobody knows that it had ended";
  EXPECT_EQ(facts.agents[1].name, "two");
  EXPECT_THAT(facts.rebuilt,
              Contains("Agent one: 10 records, 5 of 5 batches up to number 5; of phase performance "
                       "it started 1 query of which no record is here; it ended because: lost the "
                       "coordinator: silence"));
  EXPECT_THAT(facts.rebuilt, Contains(HasSubstr("Agent two: 10 records")));
  EXPECT_THAT(facts.rebuilt, Contains(HasSubstr("left no last word")));

  const auto report = make_report(facts, rebuilt->ledger, verdict::Rules{});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->verdict.valid);
  EXPECT_EQ(report->verdict.exit_code, base::ExitCode::kExecution);
  EXPECT_THAT(report->verdict.reasons.at(0).text, HasSubstr("the coordinator was lost"));
  const auto summary = nlohmann::json::parse(result_summary_json(*report));
  EXPECT_EQ(summary["n_samples_issued"], 20);
  EXPECT_EQ(summary["n_samples_completed"], 20);
  EXPECT_EQ(summary["state"], "interrupted");
  EXPECT_EQ(summary["rebuilt_from_spools"].size(), facts.rebuilt.size());
  EXPECT_TRUE(summary["distributed"]["phases"][1]["missing"].is_null());
  EXPECT_THAT(report_text(*report), HasSubstr("rebuilt from the agents' spools"));
}

TEST_F(RebuildTest, OneSpoolOfTwoGivesItsPartAndNamesTheGap) {
  const auto rebuilt = rebuild_from({two_});
  ASSERT_TRUE(rebuilt);
  EXPECT_EQ(rebuilt->ledger.size(), 10U);
  EXPECT_THAT(rebuilt->facts.rebuilt,
              Contains(HasSubstr("Agent number 0: no spool of it is here")));
  EXPECT_THAT(rebuilt->facts.rebuilt, Contains(HasSubstr("10 queries below the highest")));
  EXPECT_THAT(rebuilt->facts.watchdogs, Contains(HasSubstr("1 of 2 agents")));
}

TEST_F(RebuildTest, ATornTailCostsItsBatchOnlyAndIsNamed) {
  const std::string file = only_file(two_);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
  const auto rebuilt = rebuild_from({one_, two_});
  ASSERT_TRUE(rebuilt);
  EXPECT_EQ(rebuilt->ledger.size(), 18U);
  EXPECT_THAT(
      rebuilt->facts.rebuilt,
      Contains(testing::AllOf(HasSubstr("Damage: "), HasSubstr(file), HasSubstr("torn frame"))));
}

TEST_F(RebuildTest, BatchesKnownToBeMadeAndNotHereAreNamed) {
  const std::string file = only_file(one_);
  std::string bytes = report_run::read_file(file);
  std::size_t at = std::string::npos;
  for (int frame = 0; frame < 4; ++frame) {  // from the end: two notes, batch 5, batch 4
    at = bytes.rfind("TUTTISPL", at - 1);
  }
  bytes[at + 60] = static_cast<char>(bytes[at + 60] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const auto rebuilt = rebuild_from({one_, two_});
  ASSERT_TRUE(rebuilt);
  EXPECT_EQ(rebuilt->ledger.size(), 18U);
  EXPECT_THAT(rebuilt->facts.rebuilt,
              Contains(testing::AllOf(HasSubstr("Agent one: 8 records, 4 of 5 batches"),
                                      HasSubstr("started 3 queries of which no record"))));
}

TEST_F(RebuildTest, SpoolsOfTwoRunsAreRefusedUntilOneIsChosen) {
  RunFacts other = report_run::facts();
  other.run.low ^= 1;
  write_spool(two_, 0, 0, true, Written{other.run, run_note(other)});
  EXPECT_FALSE(rebuild_from({one_, two_}));
  EXPECT_THAT(why_, HasSubstr("several runs"));
  EXPECT_THAT(why_, HasSubstr(other.run.hex() + ": 1 agent, started 2026-10-02 10:00:00 UTC"));
  EXPECT_THAT(why_, HasSubstr(report_run::facts().run.hex() + ": 2 agents"));
  const auto chosen = rebuild_from({one_, two_}, other.run.hex());
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->facts.run, other.run);
  EXPECT_EQ(chosen->ledger.size(), 10U);
  EXPECT_FALSE(rebuild_from({one_}, other.run.hex()));
  EXPECT_THAT(why_, HasSubstr("is not in these spools"));
}

TEST_F(RebuildTest, NothingToReadIsAClearError) {
  std::filesystem::create_directories(temp_ / "empty");
  EXPECT_FALSE(rebuild_from({temp_ / "empty"}));
  EXPECT_THAT(why_, HasSubstr("--spool-dir"));
  EXPECT_FALSE(rebuild_from({temp_ / "nowhere"}));
  EXPECT_THAT(why_, HasSubstr("nowhere"));
}

TEST(RunNote, ComesBackWhole) {
  RunFacts facts = report_run::facts();
  facts.config.load_pattern = {"poisson", 12.25, std::nullopt, false};
  facts.config.balance = base::Balance::kAffinity;
  facts.config.stream_all_chunks = true;
  facts.phases[1].first_row = 77;
  const auto back = read_run_note(run_note(facts));
  ASSERT_TRUE(back);
  EXPECT_EQ(run_note(*back), run_note(facts));
  EXPECT_EQ(back->config.load_pattern.target_qps, 12.25);
  EXPECT_EQ(back->started_wall_ns, facts.started_wall_ns);
  EXPECT_EQ(back->agents.size(), 2U);
  EXPECT_EQ(back->phases[1].first_row, 77U);
  EXPECT_FALSE(read_run_note("{}"));
  EXPECT_FALSE(read_run_note("no json"));
  EXPECT_FALSE(read_run_note(R"({"layout":2})"));
}

}  // namespace
}  // namespace tutti::report
