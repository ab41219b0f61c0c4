// Command lines. The vectors of the --dataset grammar are in tests/conformance/config.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/spec/flag_names.h"
#include "common/spec/flags.h"
#include "common/spec/schema.h"

namespace tutti::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Args = std::vector<std::string>;

Args with_base(const Args& more) {
  Args args{"--endpoints",    "http://h",    "--model",       "m", "--dataset", "d.jsonl",
            "--load-pattern", "concurrency", "--concurrency", "4"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

Config accepted(const Args& more) {
  Ordering order = order_from_flags(TestType::kOnline, with_base(more));
  EXPECT_TRUE(order) << (order ? "" : to_text(order.error().problems));
  return order ? order->config : Config{};
}

std::string refused(const Args& args, base::ExitCode code = base::ExitCode::kUsage) {
  Ordering order = order_from_flags(TestType::kOnline, args);
  EXPECT_FALSE(order);
  if (order) {
    return {};
  }
  EXPECT_EQ(order.error().code, code) << to_text(order.error().problems);
  return to_text(order.error().problems);
}

TEST(SpecFlags, DottedFlattenedAndAliasNamesMeanTheSameField) {
  const Args spellings[] = {{"--target-qps", "5"},
                            {"--target_qps=5"},
                            {"--load-pattern.target-qps", "5"},
                            {"--load_pattern.target_qps", "5"},
                            {"--settings.load-pattern.target-qps", "5"},
                            {"--settings.load_pattern.target_qps=5"}};
  for (const Args& args : spellings) {
    EXPECT_EQ(accepted(args).settings.load_pattern.target_qps, 5.0) << args[0];
  }
  for (const char* flag : {"--enabled", "--warmup", "--warmup.enabled", "--warmup.enabled=yes",
                           "--settings.warmup.enabled=1"}) {
    EXPECT_TRUE(accepted({flag}).settings.warmup.enabled) << flag;
  }
}

TEST(SpecFlags, ValuesLandInTheirFields) {
  const Config config = accepted({"--model_params.top_k",
                                  "3",
                                  "--num-samples",
                                  "9",
                                  "--seed",
                                  "7",
                                  "--client.num-workers",
                                  "-1",
                                  "--max-output-tokens",
                                  "5",
                                  "--timeout",
                                  "60",
                                  "--api-type",
                                  "openai-completions",
                                  "--streaming",
                                  "off",
                                  "--warmup-requests=3",
                                  "--warmup-seed",
                                  "11",
                                  "--report-dir",
                                  "/r",
                                  "--endpoints",
                                  "http://b",
                                  "--insecure",
                                  "--client.no-stream-all-chunks",
                                  "--runtime.max-issue-duration-ms",
                                  "10m",
                                  "--name",
                                  "n",
                                  "--model-params.temperature",
                                  "-0.5"});
  EXPECT_EQ(config.model_params.top_k, 3);
  EXPECT_EQ(config.settings.runtime.n_samples_to_issue, 9);
  EXPECT_EQ(config.model_params.seed->text(), "7");
  EXPECT_EQ(config.settings.client.num_workers, -1);
  EXPECT_EQ(config.model_params.max_new_tokens, 5);
  EXPECT_EQ(config.settings.timeouts.run_timeout_s, 60.0);
  EXPECT_EQ(config.endpoint_config.api_type, base::ApiType::kOpenAiCompletions);
  EXPECT_EQ(config.model_params.streaming, Streaming::kOff);
  EXPECT_EQ(config.settings.warmup.n_requests, 3);
  EXPECT_EQ(config.settings.warmup.warmup_random_seed, 11U);
  EXPECT_EQ(config.report_dir, "/r");
  EXPECT_THAT(config.endpoint_config.endpoints, ElementsAre("http://h", "http://b"));
  EXPECT_TRUE(config.settings.client.insecure);
  EXPECT_EQ(config.settings.runtime.max_issue_duration_ms, 600000);
  EXPECT_EQ(config.name, "n");
  EXPECT_EQ(config.model_params.temperature, -0.5);
  EXPECT_EQ(config.type, TestType::kOnline);
}

TEST(SpecFlags, NegativesGoInFrontOfTheLeafOrOfAnAlias) {
  EXPECT_FALSE(accepted({"--no-early-stopping"}).settings.early_stopping.enabled);
  EXPECT_FALSE(accepted({"--early-stopping.no-enabled"}).settings.early_stopping.enabled);
  EXPECT_FALSE(accepted({"--early-stopping=false"}).settings.early_stopping.enabled);
  EXPECT_TRUE(accepted({"--early-stopping"}).settings.early_stopping.enabled);
  EXPECT_FALSE(accepted({"--no-insecure"}).settings.client.insecure);
  EXPECT_FALSE(accepted({"--client.no-insecure"}).settings.client.insecure);
  EXPECT_FALSE(accepted({"--no-enabled"}).settings.warmup.enabled);
  EXPECT_FALSE(accepted({"--no-cpu-affinity"}).enable_cpu_affinity);
  EXPECT_FALSE(accepted({"--no-use-legacy-loadgen-qps-metrics"})
                   .settings.load_pattern.use_legacy_loadgen_qps_metrics);
  EXPECT_TRUE(accepted({"--warmup-salt", "--warmup-drain"}).settings.warmup.drain);
  EXPECT_THAT(refused(with_base({"--no-insecure=true"})),
              HasSubstr("--no-insecure: takes no value"));
}

TEST(SpecFlags, ScalarsMayBeGivenOnceUnderAnyName) {
  EXPECT_THAT(refused(with_base({"--concurrency", "5"})),
              HasSubstr("--concurrency: is given more than once"));
  EXPECT_THAT(refused(with_base({"--target-concurrency", "5"})),
              HasSubstr("--target-concurrency: is given more than once"));
  EXPECT_THAT(refused(with_base({"--warmup", "--no-warmup"})), HasSubstr("more than once"));
}

TEST(SpecFlags, GrammarMistakesAreUsageErrors) {
  EXPECT_THAT(refused(with_base({"--endpoints", "http://a", "http://b"})),
              HasSubstr("unexpected argument 'http://b'"));
  EXPECT_THAT(refused(with_base({"--insecure", "false"})),
              HasSubstr("unexpected argument 'false'"));
  EXPECT_THAT(refused(with_base({"--insecure=maybe"})),
              HasSubstr("--insecure: 'maybe' must be true or false"));
  EXPECT_THAT(refused(with_base({"--num-samples"})), HasSubstr("requires an argument"));
  EXPECT_THAT(refused(with_base({"--num-samples", "--insecure"})),
              HasSubstr("requires an argument"));
  EXPECT_THAT(refused(with_base({"--num-sample", "3"})), HasSubstr("did you mean --num-samples?"));
  EXPECT_THAT(refused(with_base({"--Num-Samples", "3"})), HasSubstr("unknown flag"));
  EXPECT_THAT(refused(with_base({"-x"})), HasSubstr("flags start with two dashes"));
  EXPECT_THAT(refused(with_base({"--type", "offline"})), HasSubstr("contradicts the command"));
  EXPECT_THAT(refused(with_base({"--datasets.0.path", "x"})), HasSubstr("use --dataset"));
  EXPECT_THAT(refused(with_base({"--num-samples", "0"})),
              HasSubstr("--num-samples: settings.runtime.n_samples_to_issue: \"0\" must be > 0"));
  EXPECT_THAT(refused(with_base({"--runtime", "5"})), HasSubstr("takes a JSON mapping"));
  EXPECT_THAT(refused(with_base({"--runtime", "{x"})), HasSubstr("--runtime: is not valid JSON"));
}

TEST(SpecFlags, EverythingWrongIsToldAtOnceWithWhatIsMissing) {
  const std::string problems = refused({"--foo", "1", "--num-samples", "x", "stray"});
  for (const char* part :
       {"--foo: unknown flag", "must be a whole number", "unexpected argument 'stray'",
        "Required: --endpoint-config.endpoints [--endpoints]",
        "Required: --model-params.name [--model]", "Required: --dataset",
        "Online mode requires --load-pattern"}) {
    EXPECT_THAT(problems, HasSubstr(part));
  }
}

TEST(SpecFlags, SectionsTakeJsonAndFreeMappingsTakeKeys) {
  EXPECT_EQ(
      accepted({"--runtime", R"({"n_samples_to_issue":4})"}).settings.runtime.n_samples_to_issue,
      4);
  EXPECT_FALSE(accepted({R"(--early-stopping={"enabled":false})"}).settings.early_stopping.enabled);
  EXPECT_EQ(accepted({"--settings.client", R"({"max_connections": 7})", "--client.max-idle-time=2"})
                .settings.client.max_connections,
            7);
  const Args kwargs{"--model-params.chat-template-kwargs.enable_thinking", "false",
                    "--model-params.chat-template-kwargs.a.b", "[1]"};
  EXPECT_EQ(to_json(accepted(kwargs).model_params.chat_template_kwargs),
            R"({"enable_thinking":"false","a":{"b":"[1]"}})");
  Args json = kwargs;
  json.emplace_back("--json-values");
  EXPECT_EQ(to_json(accepted(json).model_params.chat_template_kwargs),
            R"({"enable_thinking":false,"a":{"b":[1]}})");
  EXPECT_EQ(to_json(accepted({"--model-params.chat-template-kwargs", R"({"k": 1})"})
                        .model_params.chat_template_kwargs),
            R"({"k":1})");
}

TEST(SpecFlags, AgentsFlagsFillTheDistributedBlock) {
  const Config config = accepted(
      {"--agents", "tcp://a:1,tcp://b:2", "--agents=tcp://c:3", "--local-agents", "2", "--prefetch",
       "-1", "--balance", "round-robin", "--token-source", "usage", "--connect-timeout", "3",
       "--transport", "direct", "--distributed.heartbeat-s", "0.1", "--insecure-agents"});
  EXPECT_THAT(config.distributed.agents, ElementsAre("tcp://a:1", "tcp://b:2", "tcp://c:3"));
  EXPECT_EQ(config.distributed.expect, 3);
  EXPECT_EQ(config.distributed.local_agents, 2);
  EXPECT_EQ(config.distributed.balance, base::Balance::kRoundRobin);
  EXPECT_EQ(config.distributed.token_source, TokenSource::kUsage);
  EXPECT_EQ(config.distributed.connect_timeout_s, 3.0);
  EXPECT_EQ(config.distributed.transport, base::Way::kDirect);
  EXPECT_TRUE(config.distributed.insecure);
  EXPECT_FALSE(config.settings.client.insecure);
}

TEST(SpecFlags, OldFlagsWarn) {
  Ordering order = order_from_flags(
      TestType::kOnline, with_base({"--duration", "0", "--drain", "--runtime.max-duration-ms", "5s",
                                    "--drain.performance-timeout-s", "3"}));
  ASSERT_TRUE(order) << to_text(order.error().problems);
  EXPECT_THAT(order->warnings, SizeIs(4));
  EXPECT_TRUE(order->config.settings.warmup.drain);
  EXPECT_EQ(order->config.settings.runtime.max_issue_duration_ms, 5000);
  EXPECT_EQ(order->config.settings.timeouts.performance_drain_timeout_s, 3.0);
}

TEST(SpecFlags, ModeIsCaseInsensitiveAndSaysWhatItLeavesOut) {
  EXPECT_EQ(order_from_flags(TestType::kOnline, with_base({"--mode", "PERF"}))->mode,
            RunMode::kPerf);
  EXPECT_EQ(order_from_flags(TestType::kOnline, with_base({"--mode", "Both"}))->mode,
            RunMode::kBoth);
  EXPECT_THAT(refused(with_base({"--mode", "fast"})), HasSubstr("must be one of perf, acc, both"));
  const Ordering only = order_from_flags(TestType::kOnline, with_base({"--accuracy-only"}));
  ASSERT_TRUE(only);
  EXPECT_EQ(only->mode, RunMode::kAcc);
  ASSERT_THAT(only->warnings, SizeIs(1));
  EXPECT_THAT(only->warnings[0].remedy, HasSubstr("neither read nor issued in acc mode"));
  EXPECT_TRUE(order_from_flags(TestType::kOnline, with_base({"--no-accuracy-only"})));
  Ordering order = order_from_flags(TestType::kOnline, with_base({"--dataset", "acc:e.jsonl"}));
  ASSERT_TRUE(order);
  ASSERT_THAT(order->warnings, SizeIs(1));
  EXPECT_THAT(order->warnings[0].remedy, HasSubstr("not issued in perf mode"));
}

TEST(SpecFlags, OfflineNeedsNoPatternAndRefusesOthers) {
  const Args base{"--endpoints", "http://h", "--model", "m", "--dataset", "d.jsonl"};
  const Ordering order = order_from_flags(TestType::kOffline, base);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->config.model_params.streaming, Streaming::kOff);
  Args with_pattern = base;
  with_pattern.insert(with_pattern.end(),
                      {"--load-pattern", "concurrency", "--target-concurrency", "2"});
  EXPECT_FALSE(order_from_flags(TestType::kOffline, with_pattern));
  EXPECT_TRUE(order_from_flags(TestType::kOffline, [&] {
    Args args = base;
    args.insert(args.end(), {"--load-pattern", "max-throughput"});
    return args;
  }()));
}

TEST(SpecFlags, GlobalFlagsAreTakenFromAnywhere) {
  Args args{"-v", "benchmark", "-vv", "online", "--verbose", "--x", "-h"};
  const GlobalFlags flags = take_global_flags(args);
  EXPECT_EQ(flags.verbosity, 4);
  EXPECT_TRUE(flags.help);
  EXPECT_FALSE(flags.version);
  EXPECT_THAT(args, ElementsAre("benchmark", "online", "--x"));
  Args version{"benchmark", "--version"};
  EXPECT_TRUE(take_global_flags(version).version);
}

TEST(SpecFlags, EveryVisibleFieldHasAFlagAndNoTwoFieldsShareOne) {
  std::map<std::string, std::string> owners;
  for (const Row& row : config_schema().rows()) {
    if (row.kind == FieldKind::kSection || row.kind == FieldKind::kDatasets ||
        row.kind == FieldKind::kIgnored) {
      continue;
    }
    std::vector<std::string> names = flag_aliases(row);
    names.push_back(flag_name(row));
    for (const std::string& name : names) {
      const auto [at, is_new] = owners.emplace(name, row.path);
      EXPECT_TRUE(is_new) << name << " means " << at->second << " and " << row.path;
      const auto target = flag_target(name);
      ASSERT_TRUE(target) << name;
      EXPECT_EQ(target->path, row.path) << name;
    }
  }
  EXPECT_GT(owners.size(), 90U);
}

// ---- from-config -----------------------------------------------------------------------------

class SpecFromConfig : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "spec_from_config.yaml";
    std::ofstream(path_) << "type: online\nmodel_params: {name: m}\ndatasets: [d.jsonl]\n"
                            "endpoint_config: {endpoints: [\"http://${HOST}\"]}\nsettings:\n"
                            "  load_pattern: {type: concurrency, target_concurrency: 4}\n"
                            "  timeouts: {run_timeout_s: 5}\n";
  }
  static std::optional<std::string> environment(const std::string& name) {
    return name == "HOST" ? std::optional<std::string>("h") : std::nullopt;
  }
  std::string path_;
};

TEST_F(SpecFromConfig, TakesFileTimeoutModeFolderAndAgents) {
  const Ordering order = order_from_config({"-c", path_, "--timeout", "60", "--mode", "perf",
                                            "--report-dir", "/r", "--agents", "tcp://a:1"},
                                           environment);
  ASSERT_TRUE(order) << to_text(order.error().problems);
  EXPECT_THAT(order->config.endpoint_config.endpoints, ElementsAre("http://h"));
  EXPECT_EQ(order->config.settings.timeouts.run_timeout_s, 60.0);
  EXPECT_EQ(order->config.report_dir, "/r");
  EXPECT_THAT(order->config.distributed.agents, ElementsAre("tcp://a:1"));
  EXPECT_EQ(order->config.settings.load_pattern.target_concurrency, 4);
  const Ordering plain = order_from_config({"--config=" + path_}, environment);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->config.settings.timeouts.run_timeout_s, 5.0);
}

TEST_F(SpecFromConfig, MistakesHaveTheirExitCodes) {
  const auto code = [](const Args& args) {
    const Ordering order = order_from_config(args, environment);
    EXPECT_FALSE(order);
    return order ? base::ExitCode::kOk : order.error().code;
  };
  EXPECT_EQ(code({}), base::ExitCode::kUsage);
  EXPECT_EQ(code({"-c", path_, "--concurrency", "3"}), base::ExitCode::kUsage);
  EXPECT_EQ(code({"-c", path_, "--dataset", "x"}), base::ExitCode::kUsage);
  EXPECT_EQ(code({"-c", path_, "--timeout", "0"}), base::ExitCode::kInput);
  EXPECT_EQ(code({"-c", "/nowhere.yaml"}), base::ExitCode::kInput);
  const Ordering timeout = order_from_config({"-c", path_, "--timeout", "0"}, environment);
  EXPECT_THAT(to_text(timeout.error().problems),
              HasSubstr("--timeout: settings.timeouts.run_timeout_s: \"0\" must be > 0"));
  const Ordering field = order_from_config({"-c", path_, "--concurrency", "3"}, environment);
  EXPECT_THAT(to_text(field.error().problems), HasSubstr("is a field of the config file"));
}

TEST(SpecHelp, NamesEveryFieldThatHasAnEffect) {
  const std::string help = benchmark_help(TestType::kOnline);
  for (const Row& row : config_schema().rows()) {
    const bool is_leaf = row.kind != FieldKind::kSection && row.kind != FieldKind::kDatasets;
    if (is_leaf && !row.is_hidden && row.support == Support::kFull &&
        !row.path.starts_with("audit") && !row.path.starts_with("submission_ref")) {
      EXPECT_THAT(help, HasSubstr("--" + flag_name(row))) << row.path;
    }
  }
  EXPECT_THAT(help, testing::Not(HasSubstr("--audit")));
  EXPECT_THAT(from_config_help(), HasSubstr("--agents"));
}

}  // namespace
}  // namespace tutti::spec
