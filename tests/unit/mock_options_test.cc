#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/mock_llm/draw.h"
#include "tests/mock_llm/fault.h"
#include "tests/mock_llm/options.h"

namespace tutti::mock_llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MockDraw, DurationsNeedAUnitAndABound) {
  EXPECT_EQ(parse_duration_ns("50ms"), 50'000'000);
  EXPECT_EQ(parse_duration_ns("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_duration_ns("2m"), 120'000'000'000);
  EXPECT_EQ(parse_duration_ns("7us"), 7'000);
  EXPECT_EQ(parse_duration_ns("0"), 0);
  for (const char* bad : {"", "5", "ms", "-1ms", "1e9s", "nans", "infs", "5 ms", "5h"}) {
    EXPECT_FALSE(parse_duration_ns(bad)) << bad;
  }
}

TEST(MockDraw, DistributionTextsAreCheckedWhole) {
  EXPECT_TRUE(parse_distribution("64", Quantity::kCount));
  EXPECT_TRUE(parse_distribution("fixed:64", Quantity::kCount));
  for (const char* bad : {"uniform:1", "uniform:5:4", "lognormal:5:-1", "lognormal:5:5ms",
                          "gauss:1:2", "fixed:1:2", "2000000", "-1", "exponential:", "1:2"}) {
    EXPECT_FALSE(parse_distribution(bad, Quantity::kCount)) << bad;
  }
}

double mean_of(const char* text, Quantity quantity, double* spread = nullptr) {
  const auto distribution = parse_distribution(text, quantity);
  EXPECT_TRUE(distribution) << text;
  constexpr int kDraws = 40'000;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    RequestDraws draws(i * 7919);
    const auto value = static_cast<double>(distribution->draw(draws));
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  if (spread != nullptr) {
    *spread = std::sqrt(squares / kDraws - mean * mean) / mean;
  }
  return mean;
}

TEST(MockDraw, MeansAndSpreadsAreTheOnesAskedFor) {
  double spread = 0;
  EXPECT_NEAR(mean_of("uniform:20ms:80ms", Quantity::kDuration), 50e6, 0.4e6);
  EXPECT_NEAR(mean_of("exponential:10ms", Quantity::kDuration, &spread), 10e6, 0.2e6);
  EXPECT_NEAR(spread, 1.0, 0.03);
  EXPECT_NEAR(mean_of("lognormal:200ms:0.5", Quantity::kDuration, &spread), 200e6, 2e6);
  EXPECT_NEAR(spread, 0.5, 0.02);
  EXPECT_NEAR(mean_of("uniform:1:3", Quantity::kCount), 2.0, 0.02);
  EXPECT_EQ(mean_of("lognormal:30:0", Quantity::kCount), 30);
}

TEST(MockDraw, DrawsDependOnTheSeedAndPositionAlone) {
  RequestDraws a(5);
  RequestDraws b(5);
  a.next_u64();
  const std::uint64_t second = a.next_u64();
  EXPECT_NE(b.next_u64(), second);
  EXPECT_EQ(RequestDraws(5, 1).next_u64(), second);
  EXPECT_NE(RequestDraws(6, 1).next_u64(), second);
}

TEST(MockFault, SpecsAreReadOrRefusedWithTheRightForm) {
  const auto status = parse_fault_rule("status:503@10%");
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(status->fault.kind, FaultKind::kStatus);
  EXPECT_EQ(status->fault.number, 503U);
  EXPECT_DOUBLE_EQ(status->share, 0.1);
  EXPECT_EQ(parse_fault_rule("slow-headers:500ms")->fault.duration_ns, 500'000'000);
  for (const char* bad :
       {"", "foo", "status", "status:200", "status:abc", "reset:1", "stall", "malformed:0",
        "stall:3@", "stall:3@10", "stall:3@101%", "stall:3@-1%", "stall:3@every:0",
        "stall:3@at:9-5", "stall:3@nth:4", "slow-headers:500", "reset@nan%"}) {
    EXPECT_FALSE(parse_fault_rule(bad)) << bad;
  }
}

TEST(MockFault, EveryKindIsNamedOnceAndReadable) {
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const std::string name(fault_name(kind));
    bool readable = false;
    for (const char* argument : {"", ":404", ":5ms"}) {
      const auto fault = parse_fault(name + argument);
      readable = readable || (fault && fault->kind == kind);
    }
    EXPECT_TRUE(readable) << name;
    EXPECT_THAT(fault_help(), HasSubstr("    " + name));
  }
}

TEST(MockFault, NumbersSelectExactlyTheRequestsTheySay) {
  const std::vector<FaultRule> rules = {*parse_fault_rule("reset@every:3"),
                                        *parse_fault_rule("empty@at:4-5"),
                                        *parse_fault_rule("json@at:3")};
  std::vector<FaultKind> kinds;
  for (std::uint64_t n = 1; n <= 6; ++n) {
    kinds.push_back(pick_fault(rules, n, 0.5).kind);
  }
  EXPECT_THAT(kinds, ElementsAre(FaultKind::kNone, FaultKind::kNone, FaultKind::kReset,
                                 FaultKind::kEmpty, FaultKind::kEmpty, FaultKind::kReset))
      << "the first rule that matches wins";
}

TEST(MockFault, SharesOfSeveralRulesAddUp) {
  const std::vector<FaultRule> rules = {*parse_fault_rule("reset@10%"),
                                        *parse_fault_rule("empty@20%")};
  int resets = 0;
  int empties = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const FaultKind kind = pick_fault(rules, i + 1, (static_cast<double>(i) + 0.5) / 1000).kind;
    resets += kind == FaultKind::kReset ? 1 : 0;
    empties += kind == FaultKind::kEmpty ? 1 : 0;
  }
  EXPECT_EQ(resets, 100);
  EXPECT_EQ(empties, 200);
}

TEST(MockOptionsRead, EveryProblemIsFoundInOnePass) {
  const ReadOptions read =
      read_options({"--port", "70000", "--ttft=5", "--nonsense", "x", "--framing", "dos",
                    "--stamp=yes", "--tls-key", "k", "--fault", "status:9", "--tokens"});
  std::vector<std::string> fields;
  for (const base::Problem& problem : read.problems) {
    fields.push_back(problem.field);
    EXPECT_FALSE(problem.remedy.empty());
  }
  EXPECT_THAT(fields, ElementsAre("--port", "--ttft", "--nonsense", "--framing", "--stamp",
                                  "--fault", "--tokens", "--tls-cert"));
  EXPECT_EQ(problem_line(read.problems[0]),
            "tutti-mock: --port: \"70000\": must be a whole number within 0 and 65535");
}

TEST(MockOptionsRead, ValuesArriveInBothForms) {
  const ReadOptions read = read_options({"--ports", "1,2", "--port=3", "--ttft", "uniform:1ms:2ms",
                                         "--usage", "on", "--stamp", "--seed=18446744073709551615",
                                         "--text=echo", "--max-body", "2k", "--model", "a"});
  ASSERT_TRUE(read.problems.empty()) << problem_line(read.problems[0]);
  EXPECT_THAT(read.options.ports, ElementsAre(1, 2, 3));
  EXPECT_EQ(read.options.ttft.shape, Shape::kUniform);
  EXPECT_EQ(read.options.usage, UsageRule::kFinal);
  EXPECT_TRUE(read.options.stamp);
  EXPECT_EQ(read.options.seed, UINT64_MAX);
  EXPECT_EQ(read.options.body_bytes_max, 2048U);
  EXPECT_THAT(read.options.models, ElementsAre("a"));
}

TEST(MockOptionsRead, OptionsWithoutEffectAreRefused) {
  EXPECT_EQ(read_options({"--null", "--ttft", "1ms"}).problems.size(), 1U);
  EXPECT_EQ(read_options({"--null", "--port", "1", "--model", "m", "--spin"}).problems.size(), 0U);
  EXPECT_EQ(read_options({"--strict-model"}).problems.size(), 1U);
  EXPECT_EQ(read_options({"--port", "5", "--ports", "6,5"}).problems.size(), 1U);
  EXPECT_EQ(read_options({"--port", "0", "--port", "0"}).problems.size(), 0U);
}

TEST(MockOptionsRead, WithoutOptionsItServesOnItsUsualPort) {
  const ReadOptions read = read_options({});
  EXPECT_TRUE(read.problems.empty());
  EXPECT_THAT(read.options.ports, ElementsAre(18000));
  EXPECT_THAT(read.options.models, ElementsAre("mock-model"));
  EXPECT_THAT(options_help(), HasSubstr("--max-concurrency M"));
}

}  // namespace
}  // namespace tutti::mock_llm
