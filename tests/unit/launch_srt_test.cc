// srt-slurm's side: frontends and agents from its variables, servers behind its nginx, the rollup
// its monitor reads at every stage of a run, and the windows of its power telemetry.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/launch/nginx_servers.h"
#include "coordinator/launch/srt.h"

namespace tutti::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

text::JsonValue json(const std::string& text) {
  auto value = text::read_json(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(text::JsonValue{});
}

// The value at a path, as JSON text; "-" when it is not there.
std::string at(const text::JsonValue& value, std::initializer_list<std::string> path) {
  const text::JsonValue* found = &value;
  for (const auto& name : path) {
    found = found == nullptr ? nullptr : found->find(name);
  }
  return found == nullptr ? "-" : found->to_json();
}

TEST(LaunchSrt, FrontendsComeFromTheListElseFromHostAndPort) {
  EXPECT_THAT(*srt_frontends(environment({{"MLPERF_ENDPOINTS", " a:1, https://b ,,http://c:3"},
                                          {"SRT_FRONTEND_HOST", "h"}})),
              ElementsAre("http://a:1", "https://b", "http://c:3"));
  EXPECT_THAT(*srt_frontends(environment({{"SRT_FRONTEND_HOST", "h"}})),
              ElementsAre("http://h:8000"));
  EXPECT_THAT(
      *srt_frontends(environment({{"SRT_FRONTEND_HOST", "h"}, {"SRT_FRONTEND_PORT", "8180"}})),
      ElementsAre("http://h:8180"));
  const auto none = srt_frontends(environment({{"MLPERF_ENDPOINTS", " , "}}));
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message,
              AllOf(HasSubstr("SRT_FRONTEND_HOST"), HasSubstr("MLPERF_ENDPOINTS")));
}

TEST(LaunchSrt, AgentsOfThePoolAreDialledAtThePort) {
  EXPECT_THAT(*srt_agents(environment({{"SRT_SERVICE_AGENTS_IPS", "10.0.0.1,10.0.0.2 fe::1"}})),
              ElementsAre("tcp://10.0.0.1:5870", "tcp://10.0.0.2:5870", "tcp://[fe::1]:5870"));
  EXPECT_THAT(
      *srt_agents(environment({{"SRT_SERVICE_AGENTS_IPS", "a"}, {"TUTTI_AGENT_PORT", "6001"}})),
      ElementsAre("tcp://a:6001"));
  EXPECT_THAT(*srt_agents(environment({})), IsEmpty());
  for (const std::string port : {"0", "70000", "x", "1x"}) {
    EXPECT_FALSE(srt_agents(environment({{"TUTTI_AGENT_PORT", port}})).has_value()) << port;
  }
}

TEST(LaunchSrt, ServersBehindNginxAreThoseInUse) {
  const std::string config =
      "worker_processes auto; # server 9.9.9.9:1;\n"
      "http {\n"
      "  upstream backend_servers {\n"
      "    hash $http_x consistent;\n"
      "    server 10.0.0.1:8180 max_fails=0;\n"
      "    server 10.0.0.2:8180;# second\n"
      "    server 10.0.0.3:8180 down;\n"
      "    server 10.0.0.4:8180 backup;\n"
      "    server [fe::1]:81; server plain;\n"
      "    keepalive 512;\n"
      "  }\n"
      "  server { listen 8000; location / { proxy_pass http://backend_servers; } }\n"
      "}\n";
  EXPECT_THAT(*nginx_servers(config),
              ElementsAre("10.0.0.1:8180", "10.0.0.2:8180", "[fe::1]:81", "plain:80"));
}

TEST(LaunchSrt, AnUnclearNginxIsRefused) {
  const std::map<std::string, std::string> wrong = {
      {"", "no upstream"},
      {"server { listen 80; }", "no upstream"},
      {"upstream a { server x:1; } upstream b { server y:1; }", "several upstream blocks (a, b)"},
      {"upstream a { server x:1 down; }", "no server in use"},
      {"upstream a { server unix:/run/x; }", "is a path"},
      {"upstream a { server", "no server in use"}};
  for (const auto& [config, why] : wrong) {
    const auto servers = nginx_servers(config);
    ASSERT_FALSE(servers.has_value()) << config;
    EXPECT_THAT(servers.error().message, HasSubstr(why)) << config;
  }
}

RollupFacts facts() {
  RollupFacts out;
  out.timestamp = "2026-10-02T10:00:00Z";
  out.mode = "perf";
  out.client_config = "/c/client.yaml";
  out.report_dir = "/logs/mlperf";
  out.endpoints = {"http://a:1"};
  return out;
}

TEST(LaunchSrt, ARollupIsWholeAtEveryStage) {
  RollupFacts now = facts();
  now.state = "starting";
  const auto first = json(rollup_json(now));
  EXPECT_EQ(at(first, {"benchmark_type"}), "\"mlperf\"");
  EXPECT_EQ(at(first, {"client"}), "\"tutti\"");
  const auto run = first.find("runs")->items().at(0);
  EXPECT_EQ(at(run, {"exit_code"}), "null");
  EXPECT_EQ(at(run, {"endpoints"}), "[\"http://a:1\"]");
  EXPECT_EQ(at(run, {"live"}), "-");

  now.state = "running";
  now.live = LiveCounts{"performance", 12, 2, 3.5};
  const auto second = json(rollup_json(now)).find("runs")->items().at(0);
  EXPECT_EQ(at(second, {"live", "completed"}), "12");
  EXPECT_EQ(at(second, {"live", "failed"}), "2");
}

TEST(LaunchSrt, AFinishedRollupHasTheMonitorsKeysInMilliseconds) {
  RollupFacts now = facts();
  now.state = "ended";
  now.exit_code = 4;
  now.summary = json(
      R"({"qps":2.5,"tps":null,"n_samples_issued":9,"n_samples_completed":8,"n_samples_failed":1,)"
      R"("duration_ns":2000000000,"state":"complete","complete":true,)"
      R"("legacy_loadgen_window_duration_ns":null,)"
      R"("ttft":{"min":1000000,"max":3000000,"avg":2000000.0,"median":2000000.0,)"
      R"("percentiles":{"50.0":2000000,"99.0":3000000,"99.9":3000000}},"tpot":{},)"
      R"("output_sequence_lengths":{"total":80,"min":10,"max":10,"avg":10.0,"median":10.0},)"
      R"("run_config":{"load_pattern":{"target_concurrency":64}},)"
      R"("distributed":{"agents":[{"name":"n","host":"h1","completed":8,"failed":1}]}})");
  now.accuracy =
      json(R"({"average_accuracy":0.5,"accuracy_scores":[{"dataset_name":"d","score":0.5,)"
           R"("total_samples":4,"complete":true}]})");
  const auto run = json(rollup_json(now)).find("runs")->items().at(0);
  EXPECT_EQ(at(run, {"exit_code"}), "4");
  EXPECT_EQ(at(run, {"concurrency"}), "64");
  EXPECT_EQ(at(run, {"request_throughput"}), "2.5");
  EXPECT_EQ(at(run, {"throughput_toks"}), "-") << "not counted is left out, not zero";
  EXPECT_EQ(at(run, {"ttft_mean_ms"}), "2.0");
  EXPECT_EQ(at(run, {"ttft_p99_9_ms"}), "3.0");
  EXPECT_EQ(at(run, {"tpot_mean_ms"}), "-");
  EXPECT_EQ(at(run, {"completed_requests"}), "8");
  EXPECT_EQ(at(run, {"osl"}), "10.0");
  EXPECT_EQ(at(run, {"metrics", "performance", "ttft", "p50_ms"}), "2.0");
  EXPECT_EQ(at(run, {"metrics", "performance", "tpot"}), "-");
  EXPECT_EQ(at(run, {"metrics", "performance", "qps_window"}), "\"native\"");
  EXPECT_EQ(at(run, {"metrics", "performance", "duration_s"}), "2.0");
  EXPECT_THAT(at(run, {"metrics", "accuracy", "datasets"}), HasSubstr("\"samples\":4"));
  EXPECT_THAT(at(run, {"agents_served"}), HasSubstr("\"host\":\"h1\""));
}

TEST(LaunchSrt, AWindowIsOpenWhileRunningAndClosedWithItsOwnLength) {
  Window window;
  window.result_path = "mlperf/performance/measurement_c64.json";
  window.concurrency = 64;
  window.start_unix_s = 1000.25;
  window.status = "running";
  const auto open = json(window_json(window));
  EXPECT_EQ(at(open, {"schema_version"}), "1");
  EXPECT_EQ(at(open, {"benchmark_end_time_unix"}), "null");
  EXPECT_EQ(at(open, {"duration"}), "null");
  EXPECT_EQ(at(open, {"reason"}), "null");

  window.end_unix_s = 1010.5;
  window.status = "failed";
  window.reason = "an agent was lost";
  const auto closed = json(window_json(window));
  EXPECT_EQ(at(closed, {"benchmark_start_time_unix"}), "1000.25");
  EXPECT_EQ(at(closed, {"benchmark_end_time_unix"}), "1010.5");
  EXPECT_EQ(at(closed, {"duration"}), "10.25");
  EXPECT_EQ(at(closed, {"status"}), "\"failed\"");
  EXPECT_EQ(at(closed, {"clock_source"}), "\"head_node_unix_clock\"");
}

}  // namespace
}  // namespace tutti::launch
