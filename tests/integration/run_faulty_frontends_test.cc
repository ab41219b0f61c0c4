// Frontends that fail, with real processes: never there, killed and back, slow, resetting, silent,
// and all of them at once. Each time every issued query has exactly one record with its true cause,
// report and verdict name the frontend and when it began, nothing is moved silently, the exit code
// is right, the run ends, and a dead frontend is not stormed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/mortal_mock.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kRunMs = 25'000;
const std::vector<std::string> kQuick{"--ttft", "10ms", "--gap", "1ms", "--tokens", "4"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Bench {
  std::string base;
  std::string data;
  explicit Bench(const std::string& name)
      : base(fresh_folder(name)), data(write_prompts(base, 50)) {}

  std::vector<std::string> words(const std::vector<std::string>& urls, int concurrency, int samples,
                                 const std::vector<std::string>& more = {}) const {
    return words_of({.data = data,
                     .folder = folder(),
                     .urls = urls,
                     .concurrency = static_cast<std::size_t>(concurrency),
                     .queries = static_cast<std::size_t>(samples),
                     .more = more});
  }
  std::string folder() const { return base + "/run"; }
  json summary() const { return read_json(folder() + "/performance/result_summary.json"); }
  std::string report() const { return read_text(folder() + "/report.txt"); }
};

// Every issued query has one record, and every failed one a cause at one frontend.
void expect_whole(const json& summary, int issued) {
  const json& distributed = summary["distributed"];
  for (const auto& phase : distributed["phases"]) {
    EXPECT_EQ(phase["records"], phase["issued"]);
    EXPECT_EQ(phase["missing"], 0);
    EXPECT_EQ(phase["doubled"], 0);
    EXPECT_EQ(phase["never_issued"], 0);
  }
  EXPECT_EQ(summary["n_samples_completed"], issued);
  std::map<std::string, int> failed;
  int completed = 0;
  for (const auto& endpoint : distributed["endpoints"]) {
    completed += endpoint["completed"].get<int>();
    failed[endpoint["url"].get<std::string>()] = endpoint["failed"].get<int>();
  }
  EXPECT_EQ(completed, issued);
  std::map<std::string, int> caused;
  for (const auto& failure : summary["failures"]) {
    caused[failure["endpoint"].get<std::string>()] += failure["count"].get<int>();
  }
  for (const auto& [url, count] : failed) {
    EXPECT_EQ(caused[url], count) << url;
  }
}

std::vector<std::string> causes_at(const json& summary, const std::string& url) {
  std::vector<std::string> out;
  for (const auto& failure : summary["failures"]) {
    if (failure["endpoint"] == url) {
      out.push_back(failure["cause"].get<std::string>());
      if (out.back().rfind("HTTP", 0) != 0) {  // those are the server's words
        EXPECT_THAT(failure["example"].get<std::string>(), HasSubstr(url.substr(7)))
            << "the words name the frontend";
      }
    }
  }
  return out;
}

std::string warnings(const json& summary) { return summary["verdict"]["warnings"].dump(); }
std::string reasons(const json& summary) { return summary["verdict"]["reasons"].dump(); }

// A port that nobody listens at.
std::string closed_url() { return fmt::format("http://127.0.0.1:{}", free_port()); }

// Listens and never accepts: the kernel completes the connect, and nothing else happens.
class DeafListener {
 public:
  DeafListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), port_(free_port()) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port_);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(fd_, 64), 0);
  }
  DeafListener(const DeafListener&) = delete;
  DeafListener& operator=(const DeafListener&) = delete;
  ~DeafListener() { close(fd_); }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  int fd_;
  std::uint16_t port_;
};

TEST(FaultyFrontends, OneThatIsNotThereEndsTheRunBeforeItBeginsByName) {
  const MortalMock good(kQuick);
  const Bench bench("faulty-closed");
  const std::string closed = closed_url();
  const Ran one = run_program(bench.words({good.url(), closed}, 4, 50), kRunMs);
  EXPECT_EQ(one.exit_code, 3) << one.output;
  EXPECT_THAT(one.output, HasSubstr("cannot reach " + closed));
  EXPECT_THAT(one.output, HasSubstr("refused"));
  EXPECT_EQ(good.metric("tutti_mock_completions_total"), 0) << "nothing is moved to the other one";
  const std::string other = closed_url();
  const Ran all = run_program(bench.words({closed, other}, 4, 50), kRunMs);
  EXPECT_EQ(all.exit_code, 3) << all.output;
  EXPECT_THAT(all.output,
              AllOf(HasSubstr("cannot reach " + closed), HasSubstr("cannot reach " + other)));
}

class BothWays : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(FaultyFrontends, BothWays, testing::Values("direct", "multi"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(BothWays, OneKilledInTheMiddleIsNamedAndIsBackWhenItIs) {
  const MortalMock good(kQuick);
  MortalMock mortal(kQuick);
  const Bench bench(fmt::format("faulty-killed-{}", GetParam()));
  const int samples = 2200;
  Program run(bench.words({good.url(), mortal.url()}, 8, samples, {"--transport", GetParam()}));
  ASSERT_TRUE(mortal.reaches("tutti_mock_finished_total", 100)) << run.output();
  const double before = good.metric("tutti_mock_finished_total");
  mortal.kill();
  ASSERT_TRUE(good.reaches("tutti_mock_finished_total", before + 150)) << run.output();
  mortal.start();
  ASSERT_TRUE(mortal.reaches("tutti_mock_finished_total", 100)) << run.output();
  ASSERT_EQ(run.wait(kRunMs), 0) << run.output();

  const json summary = bench.summary();
  expect_whole(summary, samples);
  const json& endpoint = summary["distributed"]["endpoints"][1];
  EXPECT_EQ(summary["distributed"]["endpoints"][0]["failed"], 0);
  EXPECT_EQ(summary["n_samples_failed"], endpoint["failed"]);
  EXPECT_GT(endpoint["failed"], 50) << "its turns while it was away";
  EXPECT_GT(endpoint["last_success_s"], endpoint["last_failure_s"]) << "it came back";
  EXPECT_GT(endpoint["first_failure_s"], 0);
  EXPECT_THAT(causes_at(summary, mortal.url()), testing::Contains("could not connect"));
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(reasons(summary), HasSubstr("requests failed"));
  EXPECT_THAT(
      warnings(summary),
      HasSubstr(fmt::format("frontend {}: {} of {} failed, the first at {:.3f} s", mortal.url(),
                            endpoint["failed"].get<int>(), endpoint["completed"].get<int>(),
                            endpoint["first_failure_s"].get<double>())));
  EXPECT_THAT(warnings(summary), HasSubstr("it answered again until"));
  EXPECT_THAT(warnings(summary), Not(HasSubstr(good.url())));
  EXPECT_THAT(bench.report(), HasSubstr("warning: frontend " + mortal.url()));
}

TEST(FaultyFrontends, OneThatIsTenTimesSlowerKeepsItsShareAndIsSeen) {
  const MortalMock quick({"--ttft", "10ms", "--gap", "1ms", "--tokens", "4"});
  const MortalMock slow({"--ttft", "100ms", "--gap", "1ms", "--tokens", "4"});
  const Bench fixed("faulty-slow-fixed");
  const Ran ran = run_program(
      fixed.words({quick.url(), slow.url()}, 8, 200, {"--balance", "round_robin"}), kRunMs);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = fixed.summary();
  expect_whole(summary, 200);
  const json& endpoints = summary["distributed"]["endpoints"];
  EXPECT_EQ(endpoints[0]["completed"], 100);
  EXPECT_EQ(endpoints[1]["completed"], 100) << "nothing is moved silently";
  EXPECT_GE(endpoints[1]["ttft_ns"]["p50"], 100'000'000);
  EXPECT_LT(endpoints[0]["ttft_ns"]["p50"], endpoints[1]["ttft_ns"]["p50"]);
  EXPECT_EQ(summary["verdict"]["valid"], true);
  EXPECT_EQ(summary["verdict"]["warnings"].size(), 0U) << warnings(summary);

  const Bench free("faulty-slow-free");
  const Ran moved = run_program(free.words({quick.url(), slow.url()}, 8, 200), kRunMs);
  ASSERT_EQ(moved.exit_code, 0) << moved.output;
  expect_whole(free.summary(), 200);
  EXPECT_EQ(free.summary()["verdict"]["valid"], true);
  EXPECT_GT(free.summary()["distributed"]["endpoints"][1]["completed"], 4) << "slow is not dead";
}

TEST_P(BothWays, OnesThatResetAreNamedEachWithItsCauseAndAreNotStormed) {
  const MortalMock good(kQuick);
  const MortalMock at_once(with(kQuick, {"--fault", "reset"}));
  const MortalMock midway(with(kQuick, {"--fault", "reset-after:2"}));
  const Bench bench(fmt::format("faulty-resets-{}", GetParam()));
  const Ran ran = run_program(
      bench.words({good.url(), at_once.url(), midway.url()}, 9, 600, {"--transport", GetParam()}),
      kRunMs);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = bench.summary();
  expect_whole(summary, 600);
  const json& endpoints = summary["distributed"]["endpoints"];
  EXPECT_EQ(endpoints[0]["failed"], 0);
  for (const auto& [index, mock] : {std::pair(1, &at_once), std::pair(2, &midway)}) {
    const json& endpoint = endpoints[static_cast<std::size_t>(index)];
    EXPECT_EQ(endpoint["failed"], endpoint["completed"]);
    EXPECT_GT(endpoint["failed"], 100) << "it keeps its turn";
    EXPECT_LT(endpoint["failed"], 300) << "and gets no more";
    EXPECT_THAT(causes_at(summary, mock->url()), testing::Each(std::string("connection lost")));
    EXPECT_THAT(warnings(summary), HasSubstr("frontend " + mock->url()));
    EXPECT_THAT(warnings(summary), HasSubstr("it never succeeded"));
    // One for each query that needed it, the probe and those opened ahead. (And ours.)
    EXPECT_LE(mock->metric("tutti_mock_connections_accepted_total"),
              endpoint["completed"].get<int>() + 2 * 9 + 4 + 10);
  }
}

TEST_P(BothWays, SilentOnesEndByTheRequestTimeoutAndItsName) {
  const MortalMock good(kQuick);
  const MortalMock mute(with(kQuick, {"--fault", "no-answer"}));
  const DeafListener deaf;
  const Bench bench(fmt::format("faulty-silent-{}", GetParam()));
  const Ran ran = run_program(bench.words({good.url(), mute.url(), deaf.url()}, 12, 60,
                                          {"--transport", GetParam(), "--request-timeout", "0.5"}),
                              kRunMs);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json summary = bench.summary();
  expect_whole(summary, 60);
  EXPECT_EQ(summary["distributed"]["endpoints"][0]["failed"], 0);
  for (const std::string& url : {mute.url(), deaf.url()}) {
    EXPECT_THAT(causes_at(summary, url), testing::ElementsAre("request timeout"));
    EXPECT_THAT(warnings(summary), HasSubstr("frontend " + url));
  }
}

TEST(FaultyFrontends, AllSilentEndsByTheIdleWatchdogAndIsNoSuccess) {
  const MortalMock mute(with(kQuick, {"--fault", "no-answer"}));
  const DeafListener deaf;
  const Bench bench("faulty-all-silent");
  const Ran ran = run_program(bench.words({mute.url(), deaf.url()}, 6, 60,
                                          {"--endpoint-response-idle-timeout", "1",
                                           "--timeouts.interrupted-teardown-grace-s", "1"}),
                              kRunMs);
  EXPECT_EQ(ran.exit_code, 4) << ran.output;
  const json summary = bench.summary();
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_THAT(ran.output, HasSubstr("EndpointResponseIdleTimeoutError"));
  expect_whole(summary, summary["n_samples_issued"].get<int>());
  EXPECT_EQ(summary["n_samples_failed"], summary["n_samples_issued"]);
  EXPECT_EQ(summary["n_samples_issued"], 6);
  for (const std::string& url : {mute.url(), deaf.url()}) {
    EXPECT_THAT(warnings(summary), HasSubstr("frontend " + url + ": none of its 3 "));
  }
}

TEST_P(BothWays, AllKilledInTheMiddleEndTheRunSoonAndWithoutAStorm) {
  MortalMock one(kQuick);
  MortalMock two(kQuick);
  const Bench bench(fmt::format("faulty-all-killed-{}", GetParam()));
  const int samples = 4000;
  Program run(bench.words({one.url(), two.url()}, 16, samples, {"--transport", GetParam()}));
  ASSERT_TRUE(one.reaches("tutti_mock_finished_total", 100)) << run.output();
  one.kill();
  two.kill();
  // What succeeded before does not make the others good: INVALID. The exit code is that of failures
  // beside successes.
  EXPECT_EQ(run.wait(kRunMs), 0) << run.output();
  const json summary = bench.summary();
  expect_whole(summary, samples);
  EXPECT_EQ(summary["verdict"]["valid"], false);
  EXPECT_GT(summary["n_samples_failed"], samples / 2);
  double first = 1e9;
  double last = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const json& endpoint = summary["distributed"]["endpoints"][i];
    EXPECT_LE(endpoint["last_success_s"], endpoint["last_failure_s"]);
    first = std::min(first, endpoint["first_failure_s"].get<double>());
    last = std::max(last, endpoint["last_failure_s"].get<double>());
    EXPECT_THAT(warnings(summary), HasSubstr("frontend " + endpoint["url"].get<std::string>()));
  }
  // Every failure is a try to connect, but for those that were cut.
  const double tries = summary["n_samples_failed"].get<double>();
  EXPECT_LE(tries, 1500 * (last - first) + 200) << "a storm";
}

TEST(FaultyFrontends, ARunInWhichAllFailedIsNoSuccess) {
  const MortalMock one(with(kQuick, {"--fault", "reset"}));
  const MortalMock two(with(kQuick, {"--fault", "status:500"}));
  const Bench bench("faulty-all-fail");
  const Ran ran = run_program(bench.words({one.url(), two.url()}, 4, 100), kRunMs);
  EXPECT_EQ(ran.exit_code, 4) << ran.output;
  expect_whole(bench.summary(), 100);
  EXPECT_THAT(reasons(bench.summary()), HasSubstr("every request failed (100 of 100)"));
  EXPECT_THAT(causes_at(bench.summary(), two.url()), testing::ElementsAre("HTTP 500"));
}

}  // namespace
}  // namespace tutti::testing_support
