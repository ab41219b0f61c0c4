// Every fault of the mock through the whole system: the record says what went wrong, partial text
// is kept, and the neighbours are unharmed. And stamps: the client's against the server's own.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int kQueries = 60;

struct Case {
  const char* fault;
  bool fails;
  const char* says;       // in the error event's text
  const char* more = "";  // one more flag, "--name=value"
  bool resent = false;    // before any reply byte on a kept connection: libcurl asks once more
};

// With the default transport, and over libcurl.
using WayAndCase = std::tuple<const char*, Case>;

// Every third query meets the fault.
const Case kCases[] = {
    {"status:503", true, "HTTP 503"},
    {"status:302", true, "HTTP 302"},
    {"reset", true, "", "", true},
    {"reset-after:3", true, ""},
    {"truncate:3", true, ""},
    {"end:3", true, ""},
    {"stall:3", true, "", "--request-timeout=1"},
    {"no-answer", true, "", "--request-timeout=1"},
    {"slow-headers:50ms", false, ""},
    {"error-event:3", true, ""},
    {"named-error:3", true, ""},
    {"empty", true, ""},
    {"no-done", false, ""},
    {"json", false, ""},
    {"close", false, ""},
    {"drip", false, ""},
    {"malformed:2", false, ""},
};

class Replies : public testing::TestWithParam<WayAndCase> {};

TEST_P(Replies, AFaultIsOneRecordWithItsCauseAndHarmsNobody) {
  const auto& [transport, c] = GetParam();
  const bool multi = *transport != '\0';
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "6", "--fault",
                      fmt::format("{}@every:3", c.fault)});
  const std::string base = fresh_folder("replies");
  std::vector<std::string> words{"tutti",
                                 "benchmark",
                                 "online",
                                 "--model",
                                 "m",
                                 "--dataset",
                                 write_prompts(base, 20),
                                 "--report-dir",
                                 base + "/run",
                                 "--load-pattern",
                                 "concurrency",
                                 "--concurrency",
                                 "6",
                                 "--num-samples",
                                 std::to_string(kQueries),
                                 "--endpoints",
                                 mock.urls()[0]};
  if (*c.more != '\0') {
    words.emplace_back(c.more);
  }
  if (multi) {
    words.emplace_back(transport);
  }
  const Ran ran = run_program(words);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = read_json(base + "/run/performance/result_summary.json");
  EXPECT_EQ(summary["n_samples_completed"], kQueries);
  EXPECT_EQ(summary["distributed"]["stamps"], multi ? "read" : "kernel receive");
  std::vector<std::string> errors;
  for (const auto& event : read_jsonl(base + "/run/events.jsonl")) {
    if (event["event_type"] == "error.generic") {
      errors.push_back(event["data"].dump());
    }
  }
  if (c.fails) {
    EXPECT_EQ(summary["n_samples_failed"], errors.size());
    if (c.resent && multi) {
      EXPECT_GT(errors.size(), 0U);
      EXPECT_THAT(read_text(base + "/run/report.txt"),
                  HasSubstr("on a fresh connection (the kept one had been closed): "));
    } else {
      EXPECT_EQ(errors.size(), kQueries / 3U);
    }
    EXPECT_THAT(errors, testing::Each(HasSubstr(c.says)));
  } else if (!multi && std::string(c.fault) == "close") {
    // A request may cross the server's close on the wire: its bytes were sent, so it is not sent
    // again.
    EXPECT_LE(errors.size(), kQueries / 3U);
    EXPECT_THAT(errors, testing::Each(HasSubstr("closed without a reply")));
  } else {
    EXPECT_THAT(errors, testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Replies,
    testing::Combine(testing::Values("", "--transport=multi"), testing::ValuesIn(kCases)),
    [](const testing::TestParamInfo<WayAndCase>& each) {
      std::string name = std::get<1>(each.param).fault;
      name += *std::get<0>(each.param) != '\0' ? "_multi" : "_direct";
      std::replace_if(
          name.begin(), name.end(),
          [](char ch) { return std::isalnum(static_cast<unsigned char>(ch)) == 0; }, '_');
      return name;
    });

TEST(Replies, TextsReachTheEventFileAsTheyWereSent) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--text", "echo"});
  const std::string base = fresh_folder("replies-texts");
  const Ran ran = run_program({"tutti", "benchmark", "online", "--model", "m", "--dataset",
                               write_prompts(base, 10), "--report-dir", base + "/run",
                               "--load-pattern", "concurrency", "--concurrency", "2",
                               "--num-samples", "10", "--endpoints", mock.urls()[0]});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  std::map<std::string, std::string> prompts;
  std::size_t checked = 0;
  for (const auto& event : read_jsonl(base + "/run/events.jsonl")) {
    const std::string id = event["sample_uuid"];
    if (event["event_type"] == "sample.issued") {
      prompts[id] = event["data"][1];
    } else if (event["event_type"] == "sample.complete") {
      // First chunk, then the rest joined.
      ASSERT_EQ(event["data"][1].size(), 2U) << event;
      EXPECT_EQ(event["data"][1][0], "prompt");
      EXPECT_EQ(event["data"][1][0].get<std::string>() + event["data"][1][1].get<std::string>(),
                prompts[id]);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 10U);
}

}  // namespace
}  // namespace tutti::testing_support
