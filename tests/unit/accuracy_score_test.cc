// Which data sets can be scored, how replies add up to a score, and the two forms a score is told
// in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "coordinator/accuracy/method.h"
#include "coordinator/accuracy/results.h"
#include "coordinator/accuracy/tally.h"

namespace tutti::accuracy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using text::JsonValue;

JsonValue truth(std::string value) { return JsonValue::of_string(std::move(value)); }

Method method(Rule rule, Extractor extractor = Extractor::kIdentity) {
  Method out;
  out.rule = rule;
  out.extractor = extractor;
  return out;
}

TEST(AccuracyTally, PassAt1IsExactAndMissingRepliesCountAsWrong) {
  // The worked example: four asked, three ended, two right.
  Tally tally(method(Rule::kPassAt1, Extractor::kBoxedMath));
  tally.add(truth("42"), "so \\boxed{42}");
  tally.add(truth("7"), "\\boxed{7}");
  tally.add(truth("7"), "\\boxed{8}");
  tally.add_missing();
  EXPECT_EQ(tally.score(), 0.5);
  EXPECT_EQ(tally.counts(), (ResponseCounts{4, 3, 0, 1}));
}

TEST(AccuracyTally, PassAt1ComparesTypeAndEveryByte) {
  Tally tally(method(Rule::kPassAt1));
  tally.add(truth("a"), "A");
  tally.add(truth("a"), " a");
  tally.add(JsonValue::of_int(42), "42");
  tally.add(JsonValue(), "");
  EXPECT_EQ(tally.score(), 0.0);
  EXPECT_EQ(tally.counts(), (ResponseCounts{4, 3, 1, 0}));
}

TEST(AccuracyTally, StringMatchTrimsBothSides) {
  Tally tally(method(Rule::kStringMatch));
  tally.add(truth(" yes\n"), "\tyes\xC2\xA0");
  tally.add(truth("yes"), "Yes");
  tally.add(JsonValue::of_bool(true), "True");
  EXPECT_DOUBLE_EQ(*tally.score(), 1.0 / 3);
  Tally boxes(method(Rule::kStringMatch, Extractor::kBoxedMath));
  boxes.add(truth("x"), "no answer");
  EXPECT_EQ(boxes.score(), 0.0);
}

TEST(AccuracyTally, BlankRepliesAreEmptyAndNothingAskedIsNoScore) {
  Tally tally(method(Rule::kPassAt1));
  EXPECT_EQ(tally.score(), std::nullopt);
  tally.add(truth("x"), " \n\xE2\x80\x83");
  EXPECT_EQ(tally.counts(), (ResponseCounts{1, 0, 1, 0}));
  Tally lost(method(Rule::kPassAt1));
  lost.add_missing();
  EXPECT_EQ(lost.score(), 0.0);
}

std::string reply(const std::string& category) {
  return R"({"category": ")" + category + R"(", "brand": "b", "is_secondhand": false})";
}

TEST(AccuracyTally, CategoryF1CountsEqualLevelsFromTheRoot) {
  Tally tally(method(Rule::kCategoryF1));
  tally.add(truth("A > B > C"), reply("A > B > C"));
  tally.add(truth("A > B > C"), reply("A > B > X"));
  EXPECT_DOUBLE_EQ(*tally.score(), 0.8333333333333334);

  Tally padded(method(Rule::kCategoryF1));
  padded.add(truth("A > B > C"), reply("A > B"));
  padded.add(truth("Z"), "I think: " + reply("Z"));
  EXPECT_NEAR(*padded.score(), 0.5714285714285715, 1e-15);
}

TEST(AccuracyTally, CategoryRepliesMustBeTheObjectAndNothingElse) {
  for (const std::string& wrong : std::vector<std::string>{
           "", "A > B", "```json\n" + reply("A > B") + "\n```",
           R"({"category": "A > B", "brand": "b"})",
           R"({"category": "A > B", "brand": "b", "is_secondhand": "no"})",
           R"({"category": "A > B", "brand": "b", "is_secondhand": false, "x": 1})"}) {
    Tally tally(method(Rule::kCategoryF1));
    tally.add(truth("A > B"), wrong);
    EXPECT_EQ(tally.score(), 0.0) << wrong;
  }
  Tally other(method(Rule::kCategoryF1));
  other.add(truth("A > B"), "\n" + reply(" A>B ") + "\n");
  EXPECT_EQ(other.score(), 0.0) << "another separator is another category";
  Method slashes = method(Rule::kCategoryF1);
  slashes.separator = "/";
  Tally good(slashes);
  good.add(truth("A / B"), reply("A/B"));
  EXPECT_EQ(good.score(), 1.0);
  // What is lost is not held against it here, in the reference's way.
  good.add_missing();
  EXPECT_EQ(good.score(), 1.0);
}

TEST(AccuracyTally, CategoriesThatAreNoTextLeaveNoScoreAndSayWhy) {
  Tally tally(method(Rule::kCategoryF1));
  tally.add(JsonValue(), reply("A"));
  EXPECT_EQ(tally.score(), std::nullopt);
  EXPECT_THAT(tally.problem(), HasSubstr("ground_truth"));
}

TEST(AccuracyTally, RougeIsAMeanOverWhatWasCompleted) {
  Tally tally(method(Rule::kRouge));
  EXPECT_FALSE(tally.rouge_score());
  tally.add(truth("the cat sat"), " The cats, sat! ");
  tally.add(truth("the cat sat"), "a dog");
  tally.add(truth("one two"), "");  // failed
  tally.add_missing();
  const auto score = tally.rouge_score();
  ASSERT_TRUE(score);
  EXPECT_EQ(tally.score(), std::nullopt);
  EXPECT_DOUBLE_EQ(score->rouge1, 33.3333);
  EXPECT_DOUBLE_EQ(score->rouge2, 33.3333);
  EXPECT_DOUBLE_EQ(score->rouge_l, 33.3333);
  EXPECT_EQ(score->texts, 3U);
  tally.add(JsonValue::of_int(3), "x");
  EXPECT_FALSE(tally.rouge_score());
  EXPECT_THAT(tally.problem(), HasSubstr("ground_truth"));
}

TEST(AccuracyTally, RougeOfSentencesCountsCharactersAndForgivesTheirOrder) {
  const auto model = read_punkt({"e.g\n", "", "", ""});
  ASSERT_TRUE(model);
  Tally tally(method(Rule::kRouge), &*model);
  tally.add(truth("One is. Two was."), " Two was.  One is. ");
  tally.add(truth("x"), "");
  const auto score = tally.rouge_score();
  ASSERT_TRUE(score && score->sentences);
  EXPECT_DOUBLE_EQ(score->rouge_l, 25);
  EXPECT_DOUBLE_EQ(score->sentences->rouge_lsum, 50);
  EXPECT_EQ(score->sentences->characters, 16U);  // "Two was.\nOne is."
  EXPECT_FALSE(Tally(method(Rule::kRouge)).rouge_score());
}

spec::Config config_with(spec::AccuracyConfig accuracy) {
  spec::Config config;
  config.datasets.resize(2);
  config.datasets[0].name = "p";
  config.datasets[1].name = "q";
  config.datasets[1].type = spec::DatasetType::kAccuracy;
  config.datasets[1].accuracy_config = std::move(accuracy);
  config.datasets[1].accuracy_config.present = true;
  return config;
}

spec::AccuracyConfig wanted(spec::Scorer scorer, std::optional<std::string> extractor) {
  spec::AccuracyConfig out;
  out.eval_method = scorer;
  out.extractor = std::move(extractor);
  return out;
}

std::string refusal(const spec::Config& config, spec::RunMode mode = spec::RunMode::kBoth) {
  const auto chosen = choose_methods(config, mode);
  if (chosen) {
    return {};
  }
  std::string out;
  for (const base::Problem& problem : chosen.error()) {
    out += problem.field + ": " + problem.value + " " + problem.remedy + "\n";
  }
  return out;
}

TEST(AccuracyMethod, WhatIsScoredHereIsChosenInOrder) {
  spec::AccuracyConfig accuracy = wanted(spec::Scorer::kShopifyCategoryF1, "identity_extractor");
  accuracy.ground_truth = "category";
  accuracy.extras = spec::Tree::map();
  accuracy.extras.set("category_separator", spec::Tree::of_string("/"));
  const auto chosen = choose_methods(config_with(accuracy), spec::RunMode::kAcc);
  ASSERT_TRUE(chosen);
  ASSERT_THAT(*chosen, SizeIs(1));
  EXPECT_EQ(chosen->front().dataset, 1U);
  EXPECT_EQ(chosen->front().method.rule, Rule::kCategoryF1);
  EXPECT_EQ(chosen->front().method.truth_column, "category");
  EXPECT_EQ(chosen->front().method.separator, "/");
}

TEST(AccuracyMethod, RougeIsScoredWithAnExtractorThatIsNotUsed) {
  const auto chosen = choose_methods(
      config_with(wanted(spec::Scorer::kRouge, "identity_extractor")), spec::RunMode::kAcc);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().method.rule, Rule::kRouge);
  EXPECT_THAT(refusal(config_with(wanted(spec::Scorer::kRouge, std::nullopt))),
              HasSubstr("requires an extractor"));
}

TEST(AccuracyMethod, PerfModeAsksAndScoresNothing) {
  const auto config = config_with(wanted(spec::Scorer::kSweBench, std::nullopt));
  const auto chosen = choose_methods(config, spec::RunMode::kPerf);
  ASSERT_TRUE(chosen);
  EXPECT_THAT(*chosen, SizeIs(0));
}

TEST(AccuracyMethod, TurnsOfConversationsAreScoredInPerfRunsToo) {
  spec::Config config;
  config.datasets.resize(1);
  spec::DatasetSpec& talks = config.datasets[0];
  talks.name = "talks";
  talks.agentic_inference.present = true;
  talks.accuracy_config.present = true;
  talks.accuracy_config.eval_method = spec::Scorer::kAgenticInline;
  for (const auto mode : {spec::RunMode::kPerf, spec::RunMode::kBoth}) {
    EXPECT_TRUE(scores_turns(config, mode));
    const auto chosen = choose_methods(config, mode);
    ASSERT_TRUE(chosen);
    EXPECT_THAT(*chosen, SizeIs(0)) << "it asks nothing more";
  }
  EXPECT_FALSE(scores_turns(config, spec::RunMode::kAcc));
  talks.accuracy_config.extractor = "identity_extractor";
  talks.accuracy_config.extras = spec::Tree::map();
  talks.accuracy_config.extras.set("n_repeats", spec::Tree::of_int(2));
  talks.agentic_inference.present = false;
  const auto refused = choose_methods(config, spec::RunMode::kPerf);
  ASSERT_FALSE(refused);
  ASSERT_THAT(refused.error(), SizeIs(3));
  EXPECT_EQ(refused.error()[0].field, "datasets.0.accuracy_config.eval_method");
  EXPECT_EQ(refused.error()[1].field, "datasets.0.accuracy_config.extractor");
  EXPECT_EQ(refused.error()[2].field, "datasets.0.accuracy_config.extras.n_repeats");
}

TEST(AccuracyMethod, EveryForeignScorerIsRefusedByName) {
  using spec::Scorer;
  const std::vector<std::pair<Scorer, std::string>> refused = {
      {Scorer::kNone, "needs a scorer"},
      {Scorer::kCodeBench, "code_bench_scorer"},
      {Scorer::kAgenticInline, "agentic_inference_inline"},
      {Scorer::kVbench, "vbench"},
      {Scorer::kBfclV4, "bfcl_v4"},
      {Scorer::kLegacyDeepseekR1, "legacy_mlperf_deepseek_r1"},
      {Scorer::kSweBench, "swe_bench_scorer"}};
  for (const auto& [scorer, name] : refused) {
    const std::string text = refusal(config_with(wanted(scorer, "identity_extractor")));
    EXPECT_THAT(text, HasSubstr("datasets.1.accuracy_config.eval_method"));
    EXPECT_THAT(text, HasSubstr("'q'"));
    EXPECT_THAT(text, HasSubstr(name));
  }
}

TEST(AccuracyMethod, ExtractorsExtrasAndNamesAreChecked) {
  using spec::Scorer;
  EXPECT_THAT(refusal(config_with(wanted(Scorer::kPassAt1, std::nullopt))),
              HasSubstr("requires an extractor"));
  EXPECT_THAT(refusal(config_with(wanted(Scorer::kPassAt1, "regex_extractor"))),
              HasSubstr("'regex_extractor' is not registered"));
  EXPECT_EQ(refusal(config_with(wanted(Scorer::kPassAt1, "function_call_extractor"))), "");
  spec::AccuracyConfig extra = wanted(Scorer::kPassAt1, "abcd_extractor");
  extra.extras = spec::Tree::map();
  extra.extras.set("timeout", spec::Tree::of_int(3));
  EXPECT_THAT(refusal(config_with(extra)), HasSubstr("extras.timeout"));
  spec::AccuracyConfig separator = wanted(Scorer::kShopifyCategoryF1, "identity_extractor");
  separator.extras = spec::Tree::map();
  separator.extras.set("category_separator", spec::Tree::of_string(""));
  EXPECT_THAT(refusal(config_with(separator)), HasSubstr("must be a text"));
  spec::Config named = config_with(wanted(Scorer::kPassAt1, "abcd_extractor"));
  named.datasets[1].name = "performance";
  EXPECT_THAT(refusal(named), HasSubstr("give it another"));
  spec::Config inline_scored = config_with(wanted(Scorer::kPassAt1, "abcd_extractor"));
  inline_scored.datasets[0].accuracy_config.present = true;
  EXPECT_THAT(refusal(inline_scored), HasSubstr("performance phase are not scored"));
  EXPECT_EQ(refusal(inline_scored, spec::RunMode::kAcc), "");
  EXPECT_THAT(refusal(spec::Config{}, spec::RunMode::kAcc),
              HasSubstr("at least one accuracy dataset"));
  EXPECT_EQ(refusal(spec::Config{}, spec::RunMode::kBoth), "");
}

Entry entry(std::string name, std::optional<double> score) {
  Entry out;
  out.dataset_name = std::move(name);
  out.extractor = "ABCDExtractor";
  out.score = score;
  out.unit_samples = 4;
  out.num_repeats = 2;
  out.duration_s = 1.23456;
  out.complete = true;
  out.responses = {8, 6, 1, 1};
  return out;
}

TEST(AccuracyResults, RougeIsAnObjectOfTextsAndInNoAverage) {
  Entry summary = entry("s", std::nullopt);
  summary.rouge = RougeScore{38.5, 100, 0, 13368, {}};
  const std::string file = results_json({entry("q", 0.25), summary});
  EXPECT_THAT(file, HasSubstr("\"average_accuracy\": 0.25"));
  EXPECT_THAT(file, HasSubstr(R"("score": {
        "rouge1": "38.5",
        "rouge2": "100.0",
        "rougeL": "0.0",
        "gen_num": 13368
      })"));
  EXPECT_THAT(results_text({summary}), HasSubstr("s: rouge1 38.5, rouge2 100.0, rougeL 0.0 (unit"));
  EXPECT_EQ(score_line(summary),
            "Score for s: {'rouge1': '38.5', 'rouge2': '100.0', 'rougeL': '0.0', 'gen_num': 13368} "
            "(2 repeats, complete=True)");
  summary.rouge->sentences = RougeSentences{35.44, 8167644};
  EXPECT_THAT(results_json({summary}), HasSubstr(R"("score": {
        "rouge1": "38.5",
        "rouge2": "100.0",
        "rougeL": "0.0",
        "rougeLsum": "35.44",
        "gen_len": "8167644",
        "gen_num": 13368
      })"));
  EXPECT_THAT(score_line(summary), HasSubstr("'rougeLsum': '35.44', 'gen_len': '8167644', 'gen_n"));
}

TEST(AccuracyResults, TheFileHasTheReferencesFieldsInOrder) {
  Entry second = entry("caf\xC3\xA9", std::nullopt);
  second.ground_truth_column = "answer";
  second.complete = false;
  EXPECT_EQ(results_json({entry("q", 0.25), second}), R"({
  "average_accuracy": 0.25,
  "accuracy_scores": [
    {
      "dataset_name": "q",
      "extractor": "ABCDExtractor",
      "ground_truth_column": null,
      "score": 0.25,
      "unit_samples": 4,
      "num_repeats": 2,
      "total_samples": 8,
      "duration_s": 1.235,
      "complete": true,
      "dataset_type": "accuracy",
      "response_counts": {
        "issued": 8,
        "scored": 6,
        "empty": 1,
        "missing": 1
      }
    },
    {
      "dataset_name": "caf\u00e9",
      "extractor": "ABCDExtractor",
      "ground_truth_column": "answer",
      "score": null,
      "unit_samples": 4,
      "num_repeats": 2,
      "total_samples": 8,
      "duration_s": 1.235,
      "complete": false,
      "dataset_type": "accuracy",
      "response_counts": {
        "issued": 8,
        "scored": 6,
        "empty": 1,
        "missing": 1
      }
    }
  ]
}
)");
}

TEST(AccuracyResults, OutputLengthsStandLastAndTheirTimesAreSummed) {
  Entry counted = entry("q", 0.25);
  counted.lengths = {7.25, 3, 12, R"({"total":29,"min":3})", 0.12345};
  Entry other = counted;
  other.dataset_name = "r";
  const std::string file = results_json({counted, other, entry("s", 0.5)});
  EXPECT_THAT(file, HasSubstr(R"(  "average_accuracy": 0.3333333333333333,
  "osl_tokenization_s": 0.247,
  "accuracy_scores": [)"));
  EXPECT_THAT(file, HasSubstr(R"(        "missing": 1
      },
      "output_sequence_lengths": {
        "total": 29,
        "min": 3
      },
      "osl_tokenize_s": 0.123
    })"));
  EXPECT_THAT(results_text({counted}), HasSubstr("    output tokens (avg/min/max): 7.2/3/12\n"));
  EXPECT_THAT(results_text({entry("s", 0.5)}), testing::Not(HasSubstr("output tokens")));
}

TEST(AccuracyResults, TheTurnsOfThePerformancePhaseAreToldAsSuchAndStayOutOfTheAverage) {
  Entry turns;
  turns.dataset_name = "performance";
  turns.of_performance = true;
  turns.score = 0.5;
  turns.unit_samples = 10;
  turns.responses = {20, 14, 0, 4};
  EXPECT_EQ(average({turns, entry("q", 0.25)}), 0.25);
  EXPECT_EQ(average({turns}), std::nullopt);
  EXPECT_EQ(results_json({turns}), R"({
  "accuracy_scores": [
    {
      "dataset_name": "performance",
      "extractor": null,
      "ground_truth_column": null,
      "score": 0.5,
      "unit_samples": 10,
      "num_repeats": 1,
      "total_samples": 20,
      "duration_s": 0.0,
      "complete": false,
      "dataset_type": "performance"
    }
  ]
}
)");
}

TEST(AccuracyResults, TheAverageIsOfTheScoresThereAre) {
  EXPECT_EQ(average({}), std::nullopt);
  EXPECT_EQ(average({entry("a", std::nullopt)}), std::nullopt);
  EXPECT_EQ(average({entry("a", 1.0), entry("b", std::nullopt), entry("c", 0.5)}), 0.75);
  EXPECT_THAT(results_json({entry("a", std::nullopt)}), testing::Not(HasSubstr("average")));
}

TEST(AccuracyResults, TheBlockAndTheLineSayTheSame) {
  Entry broken = entry("b", std::nullopt);
  broken.complete = false;
  broken.note = "column 'x' holds nothing";
  EXPECT_EQ(results_text({entry("a", 2.0 / 3), broken}),
            "Accuracy:\n"
            "  a: 0.6667 (unit=4, repeats=2, total=8, duration=1.23s)\n"
            "    responses: 6/8 scored (1 empty, 1 missing)\n"
            "  b: N/A (unit=4, repeats=2, total=8, duration=1.23s)\n"
            "    responses: 6/8 scored (1 empty, 1 missing)\n"
            "    (incomplete)\n"
            "    column 'x' holds nothing\n"
            "  Average: 0.6667\n");
  EXPECT_EQ(results_text({}), "");
  EXPECT_EQ(score_line(entry("a", 0.5)), "Score for a: 0.5 (2 repeats, complete=True)");
  EXPECT_EQ(score_line(broken), "Score for b: None (2 repeats, complete=False)");
}

}  // namespace
}  // namespace tutti::accuracy
