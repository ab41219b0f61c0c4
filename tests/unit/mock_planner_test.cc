#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/mock_llm/planner.h"

namespace tutti::mock_llm {
namespace {

using testing::HasSubstr;

RequestHead chat_head() {
  RequestHead head;
  head.method = Method::kPost;
  head.route = Route::kChat;
  return head;
}

std::string body(const std::string& text, const std::string& fields = "") {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}],"stream":true{}}})", text,
                     fields);
}

MockOptions options_of(const std::vector<std::string>& arguments) {
  ReadOptions read = read_options(arguments);
  EXPECT_TRUE(read.problems.empty()) << problem_line(read.problems[0]);
  return read.options;
}

using Facts3 = std::vector<std::pair<std::uint32_t, std::int64_t>>;

Facts3 plan_all(const MockOptions& options, const std::vector<std::string>& bodies) {
  Planner planner(options);
  Facts3 out;
  for (const std::string& text : bodies) {
    const auto plan = planner.plan(chat_head(), text, 1);
    EXPECT_TRUE(plan);
    out.emplace_back(plan->tokens, plan->ttft_ns);
  }
  return out;
}

const std::vector<std::string> kDrawn = {"--tokens", "uniform:1:1000000", "--ttft",
                                         "exponential:1s"};

TEST(MockPlanner, ByArrivalTheSameSeedGivesTheSameAnswersInOrder) {
  const MockOptions options = options_of(kDrawn);
  const std::vector<std::string> bodies = {body("a"), body("b"), body("a")};
  const Facts3 first = plan_all(options, bodies);
  EXPECT_EQ(first, plan_all(options, bodies));
  EXPECT_NE(first[0], first[2]) << "equal bodies differ by their place";
  MockOptions other = options;
  other.seed = 43;
  EXPECT_NE(first, plan_all(other, bodies));
}

TEST(MockPlanner, ByBodyTheAnswersDoNotDependOnTheOrderOfArrival) {
  MockOptions options = options_of(kDrawn);
  options.seed_from_body = true;
  Facts3 forward = plan_all(options, {body("a"), body("b"), body("c")});
  Facts3 backward = plan_all(options, {body("c"), body("b"), body("a")});
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  EXPECT_NE(forward[0], forward[1]);
}

TEST(MockPlanner, ABadRequestDoesNotShiftTheOthers) {
  const MockOptions options = options_of(kDrawn);
  Planner with(options);
  Planner without(options);
  EXPECT_EQ(with.plan(chat_head(), "{", 1).error().status, 400);
  EXPECT_TRUE(without.plan(chat_head(), body("x"), 1));
  EXPECT_EQ(with.plan(chat_head(), body("a"), 1)->tokens,
            without.plan(chat_head(), body("a"), 1)->tokens);
}

TEST(MockPlanner, MaxTokensCapReasoningAndAnswerTogether) {
  const MockOptions options = options_of({"--tokens", "10", "--reasoning-tokens", "4"});
  Planner planner(options);
  const auto whole = planner.plan(chat_head(), body("a"), 1);
  EXPECT_EQ(whole->tokens, 14U);
  EXPECT_EQ(whole->reasoning, 4U);
  EXPECT_FALSE(whole->capped);
  const auto capped = planner.plan(chat_head(), body("a", R"(,"max_tokens":3)"), 1);
  EXPECT_EQ(capped->tokens, 3U);
  EXPECT_EQ(capped->reasoning, 3U);
  EXPECT_TRUE(capped->capped);
  EXPECT_FALSE(planner.plan(chat_head(), body("a", R"(,"max_tokens":14)"), 1)->capped);
  const MockOptions ignoring = options_of({"--tokens", "10", "--max-tokens", "ignored"});
  EXPECT_EQ(Planner(ignoring).plan(chat_head(), body("a", R"(,"max_tokens":3)"), 1)->tokens, 10U);
}

TEST(MockPlanner, AnEchoIsAsLongAsThePromptUnlessToldOtherwise) {
  const MockOptions free = options_of({"--text", "echo"});
  EXPECT_EQ(Planner(free).plan(chat_head(), body("one two three"), 1)->tokens, 3U);
  EXPECT_EQ(Planner(free).plan(chat_head(), body("  "), 1)->tokens, 0U);
  const MockOptions told = options_of({"--text", "echo", "--tokens", "5"});
  EXPECT_EQ(Planner(told).plan(chat_head(), body("one two three"), 1)->tokens, 5U);
}

TEST(MockPlanner, ARequestsOwnFaultGoesBeforeTheScript) {
  const MockOptions options = options_of({"--fault", "reset"});
  Planner planner(options);
  EXPECT_EQ(planner.plan(chat_head(), body("a"), 1)->fault.kind, FaultKind::kReset);
  RequestHead head = chat_head();
  head.fault = "stall:2";
  EXPECT_EQ(planner.plan(head, body("a", R"(,"tutti_fault":"empty")"), 1)->fault.kind,
            FaultKind::kStall);
  EXPECT_EQ(planner.plan(chat_head(), body("a", R"(,"tutti_fault":"none")"), 1)->fault.kind,
            FaultKind::kNone);
  head.fault = "stall:2@10%";
  const auto bad = planner.plan(head, body("a"), 1);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().status, 400);
}

TEST(MockPlanner, SharesHitAboutTheirShareOfRequests) {
  const MockOptions options = options_of({"--fault", "status:503@10%"});
  Planner planner(options);
  int hit = 0;
  for (int i = 0; i < 5000; ++i) {
    hit += planner.plan(chat_head(), body("a"), 1)->fault.kind == FaultKind::kStatus ? 1 : 0;
  }
  EXPECT_NEAR(hit, 500, 80);
}

TEST(MockPlanner, ModelsAreLearntWithinALimitOrRefusedWhenStrict) {
  const MockOptions options = options_of({"--model", "known"});
  Planner planner(options);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const auto plan = planner.plan(chat_head(), body("a", fmt::format(R"(,"model":"m{}")", i)), 1);
    refused += plan ? 0 : 1;
  }
  EXPECT_EQ(refused, 300 - 255);
  EXPECT_EQ(planner.models()[planner.plan(chat_head(), body("a"), 1)->model], "known");
  const MockOptions strict = options_of({"--model", "known", "--strict-model"});
  const auto plan = Planner(strict).plan(chat_head(), body("a", R"(,"model":"other")"), 1);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().status, 404);
  EXPECT_THAT(plan.error().message, HasSubstr("`other`"));
}

TEST(MockPlanner, Http10StreamsEndWithTheConnection) {
  const MockOptions options = options_of({});
  RequestHead head = chat_head();
  head.http11 = false;
  head.keep_alive = true;
  const auto plan = Planner(options).plan(head, body("a"), 1);
  EXPECT_FALSE(plan->chunked);
  EXPECT_FALSE(plan->keep_alive);
}

}  // namespace
}  // namespace tutti::mock_llm
