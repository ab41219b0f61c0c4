// What the server sees of each load pattern: how many at once, when, how spread.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;

struct Result {
  Ran ran;
  json summary;
  std::string folder;
};

Result benchmark(const std::string& name, const std::string& kind, const Mock& mock,
                 const std::vector<std::string>& more) {
  Result result;
  const std::string base = fresh_folder(name);
  result.folder = base + "/run";
  std::vector<std::string> words{
      "tutti",        "benchmark",  kind, "--model", "m", "--dataset", write_prompts(base, 100),
      "--report-dir", result.folder};
  for (const auto& url : mock.urls()) {
    words.insert(words.end(), {"--endpoints", url});
  }
  words.insert(words.end(), more.begin(), more.end());
  result.ran = run_program(words, 120'000);
  result.summary = read_json(result.folder + "/performance/result_summary.json");
  return result;
}

TEST(Patterns, ConcurrencyIsHeldAndNeverExceeded) {
  const Mock mock(1, {"--ttft", "40ms", "--gap", "5ms", "--tokens", "4"});
  const Result result = benchmark("patterns-concurrency", "online", mock,
                                  {"--load-pattern", "concurrency", "--concurrency", "24",
                                   "--num-samples", "1000", "--local-agents", "3"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  EXPECT_EQ(mock.metric("tutti_mock_active_requests_peak"), 24);
  // 1000 queries of about 55 ms, 24 at a time: what the server was given to do fills the time.
  const double busy_s = 1000 * 0.055 / 24;
  EXPECT_LT(result.summary["duration_ns"].get<double>() / 1e9, busy_s * 1.6);
}

TEST(Patterns, OfflineSendsTheDataSetOnceWithoutStreaming) {
  const Mock mock(2, {"--ttft", "5ms", "--gap", "1ms", "--tokens", "5"});
  const Result result = benchmark("patterns-offline", "offline", mock, {"--token-source", "usage"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  EXPECT_EQ(result.summary["n_samples_issued"], 100);
  EXPECT_EQ(result.summary["n_samples_completed"], 100);
  EXPECT_EQ(result.summary["ttft"], json::object()) << "no stream, no first token";
  EXPECT_GT(result.summary["output_sequence_lengths"]["total"], 0) << "usage comes unasked here";
  EXPECT_EQ(result.summary["run_config"]["load_pattern"]["type"], "max_throughput");
}

TEST(Patterns, PoissonKeepsItsScheduleWhateverTheServerDoes) {
  const Mock mock(1, {"--ttft", "200ms", "--gap", "5ms", "--tokens", "4"});
  const Result result = benchmark("patterns-poisson", "online", mock,
                                  {"--load-pattern", "poisson", "--target-qps", "200",
                                   "--num-samples", "600", "--local-agents", "2"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  std::vector<std::int64_t> issued;
  std::int64_t start = 0;
  for (const auto& event : read_jsonl(result.folder + "/events.jsonl")) {
    if (event["event_type"] == "sample.issued") {
      issued.push_back(event["timestamp_ns"]);
    } else if (event["event_type"] == "session.start_performance_tracking") {
      start = event["timestamp_ns"];
    }
  }
  ASSERT_EQ(issued.size(), 600U);
  std::sort(issued.begin(), issued.end());
  // The seed's first gaps at 100 per second are 10200602 and 253288 ns: at 200 half of that.
  // The two stamps are of two clocks, mapped with an error of well under a millisecond.
  EXPECT_GE(issued[0] - start, 5'100'301 - 1'000'000);
  const double span_s = static_cast<double>(issued.back() - start) / 1e9;
  EXPECT_NEAR(span_s, 3.0, 0.5);
  EXPECT_EQ(result.summary["run_config"]["load_pattern"]["target_qps"], 200.0);
}

TEST(Patterns, APoissonRunCanBeSizedByDuration) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "2"});
  const Result result = benchmark("patterns-duration", "online", mock,
                                  {"--load-pattern", "poisson", "--target-qps", "150",
                                   "--runtime.min-issue-duration-ms", "2s"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  // 150 × 2 × 1.1 = 330.00000000000006 → 331 → whole passes of 100 rows.
  EXPECT_EQ(result.summary["n_samples_issued"], 400);
}

TEST(Patterns, ACapOnIssuingLetsTheRestEndAndTheIssuedSetIsAPrefix) {
  const Mock mock(1, {"--ttft", "20ms", "--gap", "1ms", "--tokens", "4"});
  const Result result =
      benchmark("patterns-cap", "online", mock,
                {"--load-pattern", "concurrency", "--concurrency", "16", "--num-samples", "50000",
                 "--runtime.max-issue-duration-ms", "2s", "--local-agents", "3"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  const auto issued = result.summary["n_samples_issued"].get<std::size_t>();
  EXPECT_GT(issued, 100U);
  EXPECT_LT(issued, 20000U);
  EXPECT_EQ(result.summary["n_samples_completed"], issued);
  EXPECT_EQ(result.summary["state"], "complete");
  EXPECT_EQ(read_json(result.folder + "/sample_idx_map.json")["performance"].size(), issued);
}

TEST(Patterns, RoundRobinDealsEvenlyAndLeastInFlightAvoidsTheSlowOne) {
  const Mock quick(1, {"--ttft", "5ms", "--gap", "1ms", "--tokens", "2"});
  const Mock slow(1, {"--ttft", "100ms", "--gap", "1ms", "--tokens", "2"});
  for (const std::string balance : {"round_robin", "least_in_flight"}) {
    const std::string base = fresh_folder("patterns-" + balance);
    const Ran ran = run_program({"tutti",
                                 "benchmark",
                                 "online",
                                 "--model",
                                 "m",
                                 "--dataset",
                                 write_prompts(base, 100),
                                 "--report-dir",
                                 base + "/run",
                                 "--load-pattern",
                                 "concurrency",
                                 "--concurrency",
                                 "20",
                                 "--num-samples",
                                 "600",
                                 "--balance",
                                 balance,
                                 "--endpoints",
                                 quick.urls()[0],
                                 "--endpoints",
                                 slow.urls()[0]});
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    const json endpoints =
        read_json(base + "/run/performance/result_summary.json")["distributed"]["endpoints"];
    ASSERT_EQ(endpoints.size(), 2U) << endpoints;
    const double first = endpoints[0]["completed"];
    const double second = endpoints[1]["completed"];
    EXPECT_EQ(first + second, 600);
    if (balance == "round_robin") {
      EXPECT_EQ(first, 300);
    } else {
      EXPECT_GT(first, second * 3);
    }
  }
}

TEST(Patterns, EveryChunkIsStampedWhenAsked) {
  const Mock mock(1, {"--ttft", "5ms", "--gap", "3ms", "--tokens", "6"});
  const Result result = benchmark("patterns-chunks", "online", mock,
                                  {"--load-pattern", "concurrency", "--concurrency", "4",
                                   "--num-samples", "50", "--client.stream-all-chunks"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  std::size_t later = 0;
  for (const auto& event : read_jsonl(result.folder + "/events.jsonl")) {
    later += event["event_type"] == "sample.recv_non_first" ? 1U : 0U;
  }
  EXPECT_EQ(later, 50U * 5);
  const json snapshot = read_json(result.folder + "/metrics/final_snapshot.json");
  bool counted = false;
  for (const auto& metric : snapshot["metrics"]) {
    if (metric["name"] == "chunk_delta_ns") {
      counted = true;
      EXPECT_EQ(metric["count"], 50 * 5);
    }
  }
  EXPECT_TRUE(counted);
  EXPECT_EQ(result.summary["itl"]["source"], "exact");
  EXPECT_EQ(result.summary["itl"]["count"], 50 * 5);
  EXPECT_EQ(result.summary["itl"]["counted"], 50 * 5);
}

TEST(Patterns, GapsAreCountedByTheAgentsWhenNotEveryChunkIsKept) {
  const Mock mock(1, {"--ttft", "5ms", "--gap", "8ms", "--tokens", "6"});
  const Result result = benchmark("patterns-gaps", "online", mock,
                                  {"--load-pattern", "concurrency", "--concurrency", "4",
                                   "--num-samples", "50", "--local-agents", "2"});
  ASSERT_EQ(result.ran.exit_code, 0) << result.ran.output;
  const json& itl = result.summary["itl"];
  EXPECT_EQ(itl["source"], "histogram");
  EXPECT_EQ(itl["count"], 50 * 5);
  EXPECT_EQ(itl["counted"], 50 * 5);
  EXPECT_GE(itl["median"].get<double>(), 0.5 * 8e6);  // a busy host only makes gaps uneven
  EXPECT_EQ(result.summary["ttft_from_sent"]["percentiles"].size(), 12U);
  EXPECT_EQ(result.summary["connection_setup"]["sent"], 50);
  EXPECT_NE(read_text(result.folder + "/report.txt").find("ITL (from a histogram"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::testing_support
