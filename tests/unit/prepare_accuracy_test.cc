// From a config to the phases of an accuracy run: which rows of the run's bodies they ask, in which
// order, and where their generators go on.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/plan/arrivals.h"
#include "coordinator/conduct/prepare.h"
#include "tests/support/report_run.h"

namespace tutti::conduct {
namespace {

using report_run::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

struct Rig {
  TempFolder folder;

  base::Result<RunInput> prepare(const std::string& load, spec::RunMode mode,
                                 const std::string& column = "ground_truth") {
    write("perf.jsonl", R"({"prompt":"p0"})", R"({"prompt":"p1"})", R"({"prompt":"p2"})");
    write("a.jsonl", R"({"question":"a0","ground_truth":"x"})",
          R"({"question":"a1","ground_truth":7})");
    write("b.jsonl", R"({"prompt":"b0","answer":"y"})");
    const auto read = spec::read_config_text(
        fmt::format(
            "type: online\n"
            "model_params: {{name: m}}\n"
            "datasets:\n"
            "- {{path: {0}/perf.jsonl}}\n"
            "- {{path: {0}/a.jsonl, type: accuracy, accuracy_config: {{eval_method: pass_at_1, "
            "extractor: abcd_extractor, num_repeats: 2, ground_truth: {2}}}}}\n"
            "- {{path: {0}/b.jsonl, type: accuracy, generation_config_override: "
            "{{max_new_tokens: 7}}, accuracy_config: {{eval_method: string_match, extractor: "
            "identity_extractor, ground_truth: answer}}}}\n"
            "settings:\n"
            "  load_pattern: {{{1}}}\n"
            "  timeouts: {{accuracy_drain_timeout_s: 9}}\n"
            "endpoint_config: {{endpoints: ['http://h:1']}}\n",
            folder.path(), load, column),
        "run.yaml", [](const std::string&) { return std::nullopt; });
    EXPECT_TRUE(read) << (read ? "" : spec::to_text(read.error().problems));
    return conduct::prepare(spec::Order{read->config, mode, {}}, folder.path(), 0);
  }

  template <class... Lines>
  void write(const std::string& name, const Lines&... lines) {
    std::ofstream file(folder / name);
    ((file << lines << "\n"), ...);
  }
};

std::vector<base::SampleIndex> samples_of(const plan::PhaseSpec& spec) {
  plan::Schedule schedule(spec);
  std::vector<base::SampleIndex> out;
  while (const auto command = schedule.next()) {
    out.push_back(command->sample);
  }
  return out;
}

TEST(PrepareAccuracy, PhasesAskTheirOwnRowsInOrderAndAgain) {
  Rig rig;
  const auto input = rig.prepare("type: concurrency, target_concurrency: 4", spec::RunMode::kBoth);
  ASSERT_TRUE(input) << input.error().message;
  ASSERT_EQ(input->phases.size(), 3U);
  EXPECT_EQ(input->phases[0].name, "performance");
  EXPECT_EQ(input->phases[1].name, "a");
  EXPECT_EQ(input->phases[2].name, "b");
  EXPECT_THAT(samples_of(input->phases[1].spec), ElementsAre(3, 4, 3, 4));
  EXPECT_THAT(samples_of(input->phases[2].spec), ElementsAre(5));
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(input->phases[i].spec.kind, base::PhaseKind::kAccuracy);
    EXPECT_EQ(input->phases[i].spec.pacing, base::Pacing::kClosedLoop);
    EXPECT_EQ(input->phases[i].spec.concurrency, 4U);
    EXPECT_FALSE(input->phases[i].issue_cap);
    EXPECT_EQ(input->phases[i].drain_timeout, base::Duration::seconds(9));
    EXPECT_EQ(input->accuracy[i - 1].phase, i);
  }
  // One file of bodies holds all rows, each with its data set's parameters.
  ASSERT_EQ(input->bodies.rows(), 6U);
  EXPECT_THAT(std::string(input->bodies.row(0).body), HasSubstr("\"p0\""));
  EXPECT_THAT(std::string(input->bodies.row(4).body), HasSubstr("\"a1\""));
  EXPECT_THAT(std::string(input->bodies.row(4).body), HasSubstr("1024"));
  EXPECT_THAT(std::string(input->bodies.row(5).body), HasSubstr(":7"));
  EXPECT_EQ(data::prompt_of(*input->row(2)).text, "p2");
  EXPECT_EQ(data::prompt_of(*input->row(5)).text, "b0");
  EXPECT_EQ(input->row(6), nullptr);
  EXPECT_EQ(input->accuracy[0].dataset.truths[0].as_string(), "x");
  EXPECT_EQ(input->accuracy[1].dataset.truths[0].as_string(), "y");
  EXPECT_THAT(input->notes, testing::Contains(HasSubstr("1 of 2 rows can never be right")));
}

TEST(PrepareAccuracy, PoissonGapsGoOnWhereThePhaseBeforeLeftThem) {
  Rig rig;
  const auto input = rig.prepare("type: poisson, target_qps: 50", spec::RunMode::kBoth);
  ASSERT_TRUE(input) << input.error().message;
  // Each phase draws one gap more than it has queries: 3 + 1, then 4 + 1.
  plan::PoissonArrivals stream(50, 42, 0);
  std::vector<std::int64_t> gaps;
  for (int i = 0; i < 12; ++i) {
    gaps.push_back(stream.next_gap_ns());
  }
  EXPECT_EQ(plan::Schedule(input->phases[0].spec).next()->due_offset.ns, gaps[0]);
  EXPECT_EQ(plan::Schedule(input->phases[1].spec).next()->due_offset.ns, gaps[4]);
  EXPECT_EQ(plan::Schedule(input->phases[2].spec).next()->due_offset.ns, gaps[9]);
}

TEST(PrepareAccuracy, AccuracyOnlyAsksOneAtATimeAndReadsNoPerformanceRows) {
  Rig rig;
  const auto input = rig.prepare("type: poisson, target_qps: 50", spec::RunMode::kAcc);
  ASSERT_TRUE(input) << input.error().message;
  ASSERT_EQ(input->phases.size(), 2U);
  EXPECT_TRUE(input->dataset.rows.empty());
  EXPECT_EQ(input->bodies.rows(), 3U);
  EXPECT_THAT(samples_of(input->phases[0].spec), ElementsAre(0, 1, 0, 1));
  for (const PhaseInput& phase : input->phases) {
    EXPECT_EQ(phase.spec.pacing, base::Pacing::kClosedLoop);
    EXPECT_EQ(phase.spec.concurrency, 1U);
  }
}

TEST(PrepareAccuracy, PerfModeHasNoAccuracyPhase) {
  Rig rig;
  const auto input = rig.prepare("type: poisson, target_qps: 50", spec::RunMode::kPerf);
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(input->phases.size(), 1U);
  EXPECT_EQ(input->bodies.rows(), 3U);
}

TEST(PrepareAccuracy, AMissingColumnOfAnswersIsNamedWithThoseThereAre) {
  Rig rig;
  const auto input = rig.prepare("type: poisson, target_qps: 50", spec::RunMode::kBoth, "solution");
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().code, base::ExitCode::kSetup);
  EXPECT_THAT(input.error().message, HasSubstr("solution"));
  EXPECT_THAT(input.error().message, HasSubstr("question, ground_truth"));
}

TEST(PrepareAccuracy, TheConfigOfASingleStreamSaysSo) {
  spec::Config config;
  config.settings.client.num_workers = 4;
  config.settings.client.max_connections = 1;
  config.settings.load_pattern.target_concurrency = 100;
  EXPECT_THAT(force_single_stream(config),
              ElementsAre("accuracy only: settings.client.num_workers is 1 instead of 4",
                          "accuracy only: settings.load_pattern.target_concurrency is 1 instead of "
                          "100"));
  EXPECT_EQ(config.settings.client.num_workers, 1);
  config.settings.load_pattern.target_concurrency.reset();
  EXPECT_TRUE(force_single_stream(config).empty());
  EXPECT_FALSE(config.settings.load_pattern.target_concurrency);
}

}  // namespace
}  // namespace tutti::conduct
