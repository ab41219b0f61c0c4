// Whole configs: what is accepted, what is refused and why, what is derived.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/spec/read.h"
#include "common/spec/rules.h"

namespace tutti::spec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::optional<std::string> no_environment(const std::string& /*name*/) { return std::nullopt; }

// The base config of the vectors, in parts that a case replaces.
struct Parts {
  std::string type = "type: online";
  std::string model = "model_params: {name: m}";
  std::string endpoints = R"(endpoint_config: {endpoints: ["http://h:8000"]})";
  std::string settings = "settings: {load_pattern: {type: concurrency, target_concurrency: 4}}";
  std::string datasets = "datasets: [{path: d.jsonl}]";
  std::string more = "";

  std::string text() const {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", type, model, endpoints, settings, datasets,
                       more);
  }
};

Reading read(const Parts& parts) {
  return read_config_text(parts.text(), "f.yaml", no_environment);
}

Config accepted(const Parts& parts) {
  Reading reading = read(parts);
  EXPECT_TRUE(reading) << parts.text() << (reading ? "" : to_text(reading.error().problems));
  return reading ? reading->config : Config{};
}

// All problems as one text; fails when there are none.
std::string refused(const Parts& parts) {
  Reading reading = read(parts);
  EXPECT_FALSE(reading) << parts.text();
  if (reading) {
    return {};
  }
  EXPECT_EQ(reading.error().code, base::ExitCode::kInput);
  return to_text(reading.error().problems);
}

const std::string kConcurrency = "load_pattern: {type: concurrency, target_concurrency: 4}";

TEST(SpecConfig, Cv1BaseIsAcceptedWithItsDerivedFacts) {
  const Config config = accepted({});
  EXPECT_EQ(config.name, "online_benchmark");
  EXPECT_EQ(config.type, TestType::kOnline);
  EXPECT_EQ(config.model_params.streaming, Streaming::kOn);
  ASSERT_THAT(config.datasets, SizeIs(1));
  EXPECT_EQ(config.datasets[0].name, "d");
  EXPECT_FALSE(config.datasets[0].name_is_given);
  EXPECT_EQ(config.datasets[0].type, DatasetType::kPerformance);
  EXPECT_EQ(config.datasets[0].model_params.streaming, Streaming::kOn);
  EXPECT_EQ(config.settings.runtime.scheduler_random_seed, 42U);
  EXPECT_EQ(config.settings.runtime.dataloader_random_seed, 42U);
  EXPECT_EQ(config.settings.client.num_workers, -1);
  EXPECT_EQ(config.settings.load_pattern.target_concurrency, 4);
  EXPECT_EQ(effective_mode(config), BenchmarkMode::kOnline);
}

TEST(SpecConfig, Cv2ToCv13TypesAndPatterns) {
  EXPECT_THAT(refused({.type = "type: offline"}), HasSubstr("must use 'max_throughput'"));
  const Config offline = accepted({.type = "type: offline", .settings = ""});
  EXPECT_EQ(offline.settings.load_pattern.type, Pattern::kMaxThroughput);
  EXPECT_EQ(offline.model_params.streaming, Streaming::kOff);
  EXPECT_THAT(refused({.type = "type: Online"}),
              HasSubstr("type: \"Online\" must be one of offline, online, eval, submission; did "
                        "you mean online?"));
  const Config eval = accepted({.type = "type: eval", .settings = ""});
  EXPECT_EQ(eval.model_params.streaming, Streaming::kOn);
  EXPECT_EQ(eval.name, "eval_benchmark");
  EXPECT_THAT(refused({.type = "type: submission"}), HasSubstr("must specify benchmark_mode"));

  const std::string submission = "type: submission\nbenchmark_mode: online";
  Reading reading = read({.type = submission});
  ASSERT_TRUE(reading);
  ASSERT_THAT(reading->warnings, SizeIs(1));
  EXPECT_EQ(reading->warnings[0].field, "submission_ref");

  const std::string unknown = "submission_ref: {model: x, ruleset: nope}";
  EXPECT_THAT(refused({.type = submission, .more = unknown}), HasSubstr("not registered"));
  reading = read({.more = unknown});
  ASSERT_TRUE(reading);
  EXPECT_THAT(reading->warnings, SizeIs(1));
  EXPECT_EQ(reading->config.settings.runtime.scheduler_random_seed, 42U);

  EXPECT_THAT(refused({.settings = "settings: {load_pattern: {type: concurrency}}"}),
              HasSubstr("Concurrency requires --concurrency"));
  EXPECT_THAT(refused({.settings = "settings: {load_pattern: {type: poisson}}"}),
              HasSubstr("Poisson requires --target-qps"));
  EXPECT_THAT(refused({.settings = "settings: {load_pattern: {type: poisson, target_qps: 0}}"}),
              HasSubstr("target_qps: \"0\" must be > 0"));
  EXPECT_THAT(refused({.settings = "settings: {load_pattern: {type: burst}}"}),
              HasSubstr("settings.load_pattern.type: \"burst\" is not supported yet"));
  EXPECT_THAT(refused({.settings = ""}), HasSubstr("Online mode requires --load-pattern"));
}

TEST(SpecConfig, Cv10RulesetsPinAllSeeds) {
  struct Case {
    const char* name;
    std::uint64_t scheduler;
    std::uint64_t samples;
  };
  const Case cases[] = {
      {"mlperf-inference-v5.1", 18209322760996052031U, 14771362308971278857U},
      {"mlperf-inference-v6.1", 16159082839903944936U, 2747215439041700203U},
      {"mlcommons-current", 16159082839903944936U, 2747215439041700203U},
      {"mlperf-edge-v0.1", 42U, 42U},
      {"mlperf-edge-current", 42U, 42U},
      {"mlperf-endpoints-v1.0-2026-10-C1-A", 10487924139932647040U, 586478644936801402U},
      {"mlperf-endpoints-current", 10487924139932647040U, 586478644936801402U},
  };
  for (const Case& c : cases) {
    const Config config = accepted(
        {.settings = "settings: {runtime: {scheduler_random_seed: 7}, " + kConcurrency + "}",
         .more = fmt::format("submission_ref: {{model: x, ruleset: {}}}", c.name)});
    EXPECT_EQ(config.settings.runtime.scheduler_random_seed, c.scheduler) << c.name;
    EXPECT_EQ(config.settings.runtime.dataloader_random_seed, c.samples) << c.name;
    EXPECT_EQ(config.settings.warmup.warmup_random_seed, c.samples) << c.name;
  }
}

TEST(SpecConfig, Cv14ToCv18Settings) {
  const auto settings = [](const std::string& inner) {
    return Parts{.settings = "settings: {" + inner + ", " + kConcurrency + "}"};
  };
  EXPECT_THAT(refused(settings("runtime: {min_issue_duration_ms: 10m}")),
              HasSubstr("requires load_pattern.type poisson with an explicit target_qps"));
  const Config poisson = accepted(
      {.settings = "settings: {runtime: {min_issue_duration_ms: 10m, max_issue_duration_ms: 20m}, "
                   "load_pattern: {type: poisson, target_qps: 5}}"});
  EXPECT_EQ(poisson.settings.runtime.min_issue_duration_ms, 600000);
  EXPECT_EQ(poisson.settings.runtime.max_issue_duration_ms, 1200000);
  const std::string order = refused(
      {.settings = "settings: {runtime: {min_issue_duration_ms: 20, max_issue_duration_ms: 10}, "
                   "load_pattern: {type: poisson, target_qps: 5}}"});
  EXPECT_THAT(order, HasSubstr("max_issue_duration_ms: 10 is less than min_issue_duration_ms 20"));
  EXPECT_THAT(refused(settings("runtime: {max_issue_duration_ms: 0}")), HasSubstr("must be > 0"));
  EXPECT_THAT(refused(settings("runtime: {max_issue_duration_ms: 0.0004s}")),
              HasSubstr("\"0.0004s\" must be > 0"));
  // Sexagesimal, legal and surprising: ten minutes are 600 ms.
  EXPECT_EQ(accepted(settings("runtime: {max_issue_duration_ms: 10:00}"))
                .settings.runtime.max_issue_duration_ms,
            600);
  EXPECT_THAT(refused(settings("client: {num_workers: 0}")),
              HasSubstr("num_workers: \"0\" must be >= -1 and not 0"));
  EXPECT_THAT(refused({.settings = "settings: null"}), HasSubstr("must be a mapping"));
  EXPECT_THAT(refused({.settings = "settings:"}), HasSubstr("must be a mapping"));
  EXPECT_THAT(refused(settings("runtime: {n_samples_to_issue: 1e3}")),
              HasSubstr("must be a whole number"));
  EXPECT_THAT(refused(settings("timeouts: {run_timeout_s: 0}")), HasSubstr("must be > 0"));
  EXPECT_EQ(accepted(settings("timeouts: {run_timeout_s: null, warmup_drain_timeout_s: null}"))
                .settings.timeouts.warmup_drain_timeout_s,
            std::nullopt);
  EXPECT_THAT(refused(settings("timeouts: {interrupted_teardown_grace_s: null}")),
              HasSubstr("must not be null"));
  EXPECT_THAT(refused(settings("timeouts: {run_timeout_s: .inf}")), HasSubstr("must be finite"));
}

TEST(SpecConfig, SeedsTakeAllOf64BitsAndNothingElse) {
  const auto seed = [](const std::string& value) {
    return Parts{.settings = "settings: {runtime: {scheduler_random_seed: " + value + "}, " +
                             kConcurrency + "}"};
  };
  EXPECT_EQ(accepted(seed("18446744073709551615")).settings.runtime.scheduler_random_seed,
            UINT64_MAX);
  EXPECT_EQ(accepted(seed("\"10487924139932647040\"")).settings.runtime.scheduler_random_seed,
            10487924139932647040U);
  EXPECT_THAT(refused(seed("18446744073709551616")), HasSubstr("must be between 0 and"));
  EXPECT_THAT(refused(seed("-18446744073709551616")), HasSubstr("must be between 0 and"));
  EXPECT_EQ(accepted(seed("-1")).settings.runtime.scheduler_random_seed, 1U);
  EXPECT_THAT(
      refused({.settings = "settings: {warmup: {warmup_random_seed: -1}, " + kConcurrency + "}"}),
      HasSubstr("must be between 0 and"));
  const Config config = accepted({.model = "model_params: {name: m, seed: 9315206023656308754}"});
  EXPECT_EQ(config.model_params.seed->text(), "9315206023656308754");
  EXPECT_EQ(accepted({.model = "model_params: {name: m, seed: -5}"}).model_params.seed->text(),
            "-5");
}

TEST(SpecConfig, Cv19AndCv20Endpoints) {
  const auto endpoints = [](const std::string& value) {
    return Parts{.endpoints = "endpoint_config: {endpoints: " + value + "}"};
  };
  EXPECT_THAT(refused(endpoints("[]")), HasSubstr("at least one endpoint"));
  EXPECT_THAT(refused(endpoints("http://h")), HasSubstr("must be a list"));
  EXPECT_THAT(refused(endpoints("[\"h:8000\"]")),
              HasSubstr("Endpoint URL must include scheme (http:// or https://), got: 'h:8000'"));
  EXPECT_THAT(refused(endpoints("[HTTP://h]")), HasSubstr("must include scheme"));
  EXPECT_THAT(refused(endpoints("[\"http://\"]")), HasSubstr("no host"));
  EXPECT_THAT(accepted(endpoints("[\" http://h \"]")).endpoint_config.endpoints,
              ElementsAre("http://h"));
  EXPECT_THAT(refused({.endpoints = ""}), HasSubstr("endpoint_config: is required"));
  EXPECT_THAT(refused({.endpoints = "endpoint_config: {}"}),
              HasSubstr("endpoint_config.endpoints: is required"));
  EXPECT_THAT(
      refused({.endpoints = "endpoint_config: {endpoints: [http://h], api_key: <redacted>}"}),
      HasSubstr("put the key back"));
  EXPECT_EQ(accepted({.endpoints = "endpoint_config: {endpoints: [http://h], api_type: sglang}"})
                .endpoint_config.api_type,
            base::ApiType::kSglang);
  const char* const video = "endpoint_config: {endpoints: [http://h], api_type: videogen}";
  EXPECT_EQ(accepted({.endpoints = video}).model_params.streaming, Streaming::kOff);
  EXPECT_THAT(
      refused({.model = "model_params: {name: m, streaming: \"on\"}", .endpoints = video}),
      HasSubstr("model_params.streaming: endpoint_config.api_type=videogen has no streams"));
}

TEST(SpecConfig, Cv21ToCv24Model) {
  EXPECT_THAT(refused({.model = "model_params: {}"}),
              HasSubstr("Required: --model-params.name [--model]"));
  EXPECT_THAT(refused({.model = ""}), HasSubstr("Required: --model-params.name"));
  EXPECT_EQ(accepted({.model = "",
                      .more = "submission_ref: {model: x, ruleset: "
                              "mlperf-edge-current}"})
                .model_params.name,
            "x");
  EXPECT_EQ(accepted({.model = "model_params: {name: m, streaming: on}"}).model_params.streaming,
            Streaming::kOn);
  EXPECT_EQ(accepted({.model = "model_params: {name: m, streaming: off}"}).model_params.streaming,
            Streaming::kOff);
  EXPECT_THAT(refused({.model = "model_params: {name: m, min_new_tokens: 0}"}),
              HasSubstr("model_params.min_new_tokens requires "
                        "endpoint_config.api_type=openai_completions"));
  EXPECT_THAT(
      refused({.model = "model_params: {name: m, min_new_tokens: 0, skip_special_tokens: no}"}),
      HasSubstr("model_params.min_new_tokens and model_params.skip_special_tokens require"));
  const Config completions = accepted(
      {.model = "model_params: {name: m, min_new_tokens: 0}",
       .endpoints = "endpoint_config: {endpoints: [http://h], api_type: openai_completions}"});
  EXPECT_EQ(completions.endpoint_config.api_type, base::ApiType::kOpenAiCompletions);
  EXPECT_EQ(accepted({.model = "model_params: {name: m, max_new_tokens: 1, min_new_tokens: 1}"})
                .model_params.max_new_tokens,
            1);
  EXPECT_THAT(refused({.model = "model_params: {name: m, max_new_tokens: 0}"}),
              HasSubstr("min_new_tokens 1 must be less than or equal to max_new_tokens 0"));
  EXPECT_EQ(
      accepted({.model = "model_params: {name: m, temperature: 1e-3}"}).model_params.temperature,
      0.001);
}

TEST(SpecConfig, Cv25ToCv29Datasets) {
  const Config both = accepted({.datasets = R"(datasets: ["d.jsonl", "acc:d.jsonl"])"});
  ASSERT_THAT(both.datasets, SizeIs(2));
  EXPECT_EQ(both.datasets[1].type, DatasetType::kAccuracy);
  EXPECT_THAT(refused({.datasets = R"(datasets: ["a/d.jsonl", "b/d.csv"])"}),
              HasSubstr("Duplicate dataset names: ['d (performance)']"));
  EXPECT_THAT(refused({.datasets = "datasets: [{path: d, samples: 0}]"}),
              HasSubstr("datasets.0.samples: \"0\" must be > 0"));
  const auto with_override = [](const std::string& text) {
    return Parts{.datasets = "datasets: [{path: d, generation_config_override: " + text + "}]"};
  };
  EXPECT_THAT(refused(with_override("{max_tokens: 5}")),
              HasSubstr("generation_config_override.max_tokens: unknown key; valid are "
                        "chat_template_kwargs, frequency_penalty, max_new_tokens"));
  EXPECT_THAT(refused(with_override("{streaming: \"off\"}")), HasSubstr("not honored per dataset"));
  EXPECT_THAT(refused(with_override("{max_new_tokens: 0}")),
              HasSubstr("must be less than or equal to max_new_tokens 0"));
  EXPECT_THAT(refused(with_override("{temperature: hot}")),
              HasSubstr("datasets.0.generation_config_override.temperature: \"hot\" must be a "
                        "number"));
  EXPECT_THAT(refused(with_override("{min_new_tokens: 0}")),
              HasSubstr("datasets['d'].generation_config_override.min_new_tokens requires"));
  EXPECT_THAT(accepted({.datasets = "datasets: []"}).datasets, SizeIs(0));
  EXPECT_THAT(accepted({.datasets = ""}).datasets, SizeIs(0));
  EXPECT_THAT(refused({.datasets = "datasets: d.jsonl"}), HasSubstr("must be a list"));
  EXPECT_THAT(refused({.datasets = "datasets: [5]"}), HasSubstr("must be a mapping or a text"));
}

TEST(SpecConfig, VecC2OverridesMergeDeeply) {
  const Config config = accepted(
      {.model = "model_params: {name: m, max_new_tokens: 1024, temperature: 0.5, "
                "chat_template_kwargs: {a: 1, b: {c: 2}}}",
       .datasets = "datasets: [{path: d, generation_config_override: {max_new_tokens: 32768, "
                   "temperature: null, chat_template_kwargs: {b: {d: 3}}}}]"});
  const ModelParams& params = config.datasets[0].model_params;
  EXPECT_EQ(params.max_new_tokens, 32768);
  EXPECT_EQ(params.temperature, std::nullopt);
  EXPECT_EQ(to_json(params.chat_template_kwargs), R"({"a":1,"b":{"c":2,"d":3}})");
  EXPECT_EQ(params.name, "m");
  EXPECT_EQ(params.streaming, Streaming::kOn);
  EXPECT_EQ(config.model_params.max_new_tokens, 1024);
}

TEST(SpecConfig, Cv30And31AConversationSetAndItsPatternWantEachOther) {
  const char* const kSet = "datasets: [{path: d, agentic_inference: {}}]";
  const char* const kPlays =
      "settings: {load_pattern: {type: agentic_inference, "
      "target_concurrency: 4}}";
  EXPECT_THAT(refused({.datasets = kSet}), HasSubstr("datasets.0.agentic_inference: requires "
                                                     "load_pattern.type=agentic_inference"));
  EXPECT_THAT(refused({.settings = kPlays}), HasSubstr("requires the performance dataset to have "
                                                       "agentic_inference config"));
  const Config config = accepted({.settings = kPlays, .datasets = kSet});
  const AgenticInference& block = config.datasets[0].agentic_inference;
  EXPECT_TRUE(block.present);
  EXPECT_EQ(block.turn_timeout_s, 86400);
  EXPECT_EQ(block.routing_headers, std::vector<std::string>{"X-Session-ID"});
  // Null is the absence of the block.
  accepted({.datasets = "datasets: [{path: d, agentic_inference: null}]"});
}

TEST(SpecConfig, WhatDoesNotGoWithConversationsIsRefusedByName) {
  const std::string set = "datasets: [{path: d, agentic_inference: {}}]";
  const auto settings = [](const char* more) {
    return fmt::format(
        "settings: {{load_pattern: {{type: agentic_inference, target_concurrency: 4}}{}}}", more);
  };
  EXPECT_THAT(
      refused({.settings = settings(", runtime: {n_samples_to_issue: 5}"), .datasets = set}),
      HasSubstr("use the data set's num_trajectories_to_issue"));
  EXPECT_THAT(refused({.settings = settings(""),
                       .datasets = set,
                       .more = "distributed: {prefetch: 3}\naudit: {test: output_caching_test}"}),
              AllOf(HasSubstr("distributed.prefetch: agentic_inference hands out one conversation"),
                    HasSubstr("audit.test: asks one row for ever")));
  EXPECT_THAT(refused({.settings = settings(""),
                       .datasets = "datasets: [{path: d, agentic_inference: {routing_headers: "
                                   "['no good', Host]}}]"}),
              AllOf(HasSubstr("routing_headers.0: 'no good' is not the name of a header"),
                    HasSubstr("routing_headers.1: 'Host' cannot be Host")));
  EXPECT_THAT(refused({.datasets = "datasets: [{path: d, type: accuracy, agentic_inference: {}}]"}),
              HasSubstr("only supported on performance datasets"));
  EXPECT_THAT(refused({.endpoints = "endpoint_config: {endpoints: ['http://h'], api_type: sglang}",
                       .settings = settings(""),
                       .datasets = set}),
              HasSubstr("requires endpoint_config.api_type=openai"));
}

TEST(SpecConfig, Cv33ToCv38Rest) {
  EXPECT_THAT(refused({.more = "metrics: {}"}), HasSubstr("metrics: unknown key"));
  EXPECT_THAT(refused({.more = "version: 1.0"}),
              HasSubstr("version: \"1.0\" must be text; put it in quotes"));
  EXPECT_THAT(refused({.more = "name: 123"}), HasSubstr("must be text"));
  EXPECT_EQ(accepted({.more = "name: ' n '"}).name, "n");
  EXPECT_EQ(accepted({.endpoints = "endpoint_config: {endpoints: [http://h], api_key: "
                                   "\"${KEY:-}\"}"})
                .endpoint_config.api_key,
            "");
  EXPECT_THAT(
      refused({.datasets = "datasets: [{path: d, accuracy_config: {eval_method: exact_match}}]"}),
      HasSubstr("accuracy_config.eval_method: \"exact_match\" must be one of pass_at_1"));
  EXPECT_THAT(refused({.datasets = "datasets: [{path: d, accuracy_config: {num_repeats: 0}}]"}),
              HasSubstr("must be >= 1"));
  EXPECT_THAT(refused({.settings = "settings: {profiling: {engine: vllm}, " + kConcurrency + "}"}),
              HasSubstr("profiling is not supported yet"));
  accepted({.settings = "settings: {profiling: {engine: null, urls: null}, " + kConcurrency + "}"});
  EXPECT_THAT(refused({.datasets = "datasets: [{path: d, parser: {prompt: 5}}]"}),
              HasSubstr("datasets.0.parser.prompt: \"5\" must be text"));
}

TEST(SpecConfig, SweBenchWantsOneEndpointAndTakesItsWorkersFromTheConcurrency) {
  const std::string dataset =
      "datasets: [{path: d, type: accuracy, accuracy_config: {eval_method: swe_bench_scorer}}]";
  const Config config = accepted({.datasets = dataset});
  EXPECT_EQ(to_json(config.datasets[0].accuracy_config.extras), R"({"workers":4})");
  EXPECT_THAT(refused({.endpoints = "endpoint_config: {endpoints: [http://a, http://b]}",
                       .datasets = dataset}),
              HasSubstr("exactly one endpoint URL; got 2"));
}

TEST(SpecConfig, InertSettingsWarnOnlyWhenTheyDifferFromTheirDefault) {
  const auto client = [](const std::string& text) {
    return Parts{.settings = "settings: {client: {" + text + "}, " + kConcurrency + "}"};
  };
  Reading reading = read(client("worker_gc_mode: relaxed, transport: {io_threads: 4}"));
  ASSERT_TRUE(reading);
  EXPECT_THAT(reading->warnings, SizeIs(0));
  reading = read(client("worker_gc_mode: system, transport: {io_threads: 8}, api_key: x"));
  ASSERT_TRUE(reading);
  ASSERT_THAT(reading->warnings, SizeIs(3));
  EXPECT_THAT(reading->warnings[0].remedy, HasSubstr("has no effect"));
  EXPECT_EQ(reading->warnings[2].value, "<redacted>");
}

TEST(SpecConfig, AWarmUpThatIsNotToBeDrainedIsWarnedAbout) {
  const auto warmup = [](const std::string& text) {
    return read({.settings = "settings: {warmup: {" + text + "}, " + kConcurrency + "}"});
  };
  const Reading reading = warmup("enabled: true, drain: false");
  ASSERT_TRUE(reading);
  ASSERT_THAT(reading->warnings, SizeIs(1));
  EXPECT_EQ(reading->warnings[0].field, "settings.warmup.drain");
  EXPECT_THAT(reading->warnings[0].remedy, HasSubstr("always waits"));
  for (const char* quiet : {"enabled: true", "enabled: true, drain: true", "drain: false"}) {
    EXPECT_THAT(warmup(quiet)->warnings, SizeIs(0)) << quiet;
  }
}

TEST(SpecConfig, OldNamesAreTakenWithAWarning) {
  Reading reading = read(
      {.settings = "settings:\n"
                   "  runtime: {min_duration_ms: 0, max_duration_ms: 5000}\n"
                   "  drain: {warmup_timeout_s: 1, performance_timeout_s: 2, accuracy_timeout_s: "
                   "null, metrics_drain_timeout_s: 0.0, metrics_tokenizer_workers: 4}\n"
                   "  service_ready_timeout_s: 9\n  " +
                   kConcurrency,
       .more = "timeout: 77"});
  ASSERT_TRUE(reading) << to_text(reading.error().problems);
  const Settings& settings = reading->config.settings;
  EXPECT_EQ(settings.runtime.min_issue_duration_ms, std::nullopt);
  EXPECT_EQ(settings.runtime.max_issue_duration_ms, 5000);
  EXPECT_EQ(settings.timeouts.run_timeout_s, 77.0);
  EXPECT_EQ(settings.timeouts.warmup_drain_timeout_s, 1.0);
  EXPECT_EQ(settings.timeouts.performance_drain_timeout_s, 2.0);
  EXPECT_EQ(settings.timeouts.metrics_drain_timeout_s, std::nullopt);
  EXPECT_EQ(settings.timeouts.service_ready_timeout_s, 9.0);
  EXPECT_THAT(reading->warnings, SizeIs(9));

  // A minimum without a rate is dropped, with a rate it is kept; today's name wins over the old
  // one.
  const Config dropped = accepted(
      {.settings = "settings: {runtime: {min_duration_ms: 600000}, " + kConcurrency + "}"});
  EXPECT_EQ(dropped.settings.runtime.min_issue_duration_ms, std::nullopt);
  const Config kept = accepted({.settings = "settings: {runtime: {min_duration_ms: 10m}, "
                                            "load_pattern: {type: poisson, target_qps: 2}}"});
  EXPECT_EQ(kept.settings.runtime.min_issue_duration_ms, 600000);
  const Config newer =
      accepted({.settings = "settings: {timeouts: {run_timeout_s: 5}, " + kConcurrency + "}",
                .more = "timeout: 77"});
  EXPECT_EQ(newer.settings.timeouts.run_timeout_s, 5.0);
  // A bad value under an old name is told at its own line.
  const std::string problem = refused({.more = "timeout: soon"});
  EXPECT_THAT(problem, HasSubstr("f.yaml:6: settings.timeouts.run_timeout_s: \"soon\""));
}

TEST(SpecConfig, UnknownKeysComeWithASuggestion) {
  const auto settings = [](const std::string& inner) {
    return refused({.settings = "settings: {" + inner + ", " + kConcurrency + "}"});
  };
  EXPECT_THAT(settings("runtme: {}"),
              HasSubstr("settings.runtme: unknown key; did you mean runtime?"));
  EXPECT_THAT(settings("runtime: {num_samples: 5}"), HasSubstr("did you mean n_samples_to_issue?"));
  EXPECT_THAT(settings("run_timeout_s: 5"),
              HasSubstr("unknown key here; did you mean settings.timeouts.run_timeout_s?"));
  EXPECT_THAT(settings("early_stopping: {zzz: 1}"), HasSubstr("this section knows enabled"));
  EXPECT_THAT(refused({.more = "settings.runtime: {}"}), HasSubstr("unknown key"));
  EXPECT_THAT(refused({.more = "1: x"}), HasSubstr("f.yaml:6: 1: unknown key"));
}

TEST(SpecConfig, SecretsNeverEnterAProblem) {
  const std::string problem =
      refused({.endpoints = "endpoint_config: {endpoints: [\"ftp://u:pass@h/?token=q\", "
                            "\"http://u:pass@h\"], api_key: [s3cret]}",
               .datasets = "datasets: [{path: d, accuracy_config: {extras: "
                           "{auth_token: {x: s3cret}}, num_repeats: s3}}]"});
  EXPECT_THAT(problem, HasSubstr("api_key: \"<redacted>\" must be text"));
  EXPECT_THAT(problem, testing::Not(HasSubstr("s3cret")));
}

TEST(SpecConfig, DistributedBlock) {
  const auto distributed = [](const std::string& text) {
    return Parts{.more = "distributed: {" + text + "}"};
  };
  const Config config = accepted(distributed(
      "agents: [tcp://a:5000, 'tcp://[::1]:5001'], prefetch: 0, balance: pinned, transport: multi, "
      "request_timeout_s: 3, token_source: usage"));
  EXPECT_THAT(config.distributed.agents, ElementsAre("tcp://a:5000", "tcp://[::1]:5001"));
  EXPECT_EQ(config.distributed.expect, 2);
  EXPECT_EQ(config.distributed.balance, base::Balance::kPinned);
  EXPECT_EQ(config.distributed.transport, base::Way::kMulti);
  EXPECT_EQ(config.distributed.request_timeout_s, 3.0);
  EXPECT_EQ(config.distributed.token_source, TokenSource::kUsage);
  EXPECT_EQ(accepted(distributed("listen: 'tcp://0.0.0.0:7', expect: 3")).distributed.expect, 3);

  for (const char* address : {"a:1", "tcp://a", "tcp://:1", "tcp://a:0", "tcp://a:65536",
                              "tcp://a:1x", "tcp://a b:1", "tcp://::1:5", "udp://a:1", "ipc://"}) {
    EXPECT_THAT(refused(distributed(fmt::format("agents: ['{}']", address))),
                HasSubstr("distributed.agents.0"))
        << address;
  }
  EXPECT_THAT(refused(distributed("agents: [tcp://a:1, tcp://a:1]")), HasSubstr("listed twice"));
  EXPECT_EQ(accepted(distributed("listen: 'tcp://0.0.0.0:*', expect: 3, rendezvous: /s/f"))
                .distributed.rendezvous,
            "/s/f");
  EXPECT_THAT(refused(distributed("rendezvous: /s/f")), HasSubstr("needs listen"));
  EXPECT_THAT(refused(distributed("agents: ['tcp://a:*']")), HasSubstr("must end with a port"));
  EXPECT_THAT(refused(distributed("listen: tcp://a:1")), HasSubstr("must say how many agents"));
  EXPECT_THAT(refused(distributed("expect: 2")), HasSubstr("needs listen or agents"));
  EXPECT_THAT(refused(distributed("agents: [tcp://a:1], expect: 2")), HasSubstr("must be 1"));
  EXPECT_EQ(accepted(distributed("on_agent_loss: continue")).distributed.on_agent_loss,
            OnAgentLoss::kContinue);
  EXPECT_EQ(accepted(distributed("prefetch: 0")).distributed.on_agent_loss, OnAgentLoss::kStop);
  EXPECT_EQ(accepted(distributed("prefetch: 0")).distributed.token_counting, TokenCounting::kAuto);
  EXPECT_EQ(accepted(distributed("token_counting: agents")).distributed.token_counting,
            TokenCounting::kAgents);
  for (const char* source : {"usage", "none"}) {
    EXPECT_THAT(
        refused(distributed(fmt::format("token_counting: agents, token_source: {}", source))),
        HasSubstr("agents count with a tokenizer"));
  }
  EXPECT_THAT(refused(distributed("on_agent_loss: ignore")),
              HasSubstr("must be one of stop, continue"));
  EXPECT_THAT(refused(distributed("balance: fastest")),
              HasSubstr("must be one of least_in_flight"));
  Parts secure = distributed("transport: direct");
  EXPECT_EQ(accepted(secure).distributed.transport, base::Way::kDirect);
  secure.endpoints = R"(endpoint_config: {endpoints: ["http://h:8000", "https://h:8001"]})";
  EXPECT_EQ(accepted(secure).distributed.transport, base::Way::kDirect);
  EXPECT_THAT(refused(distributed("heartbeat_s: 4, lost_after_s: 5")),
              HasSubstr("at least twice heartbeat_s: 8 or more"));
  EXPECT_THAT(refused(distributed("prefetch: -2")), HasSubstr("must be >= -1"));
}

TEST(SpecConfig, TheModeIsPerfUnlessAskedOtherwise) {
  EXPECT_EQ(default_mode(accepted({})), RunMode::kPerf);
}

TEST(SpecConfig, WhatIsNoMappingIsSaidToBeWhatItIs) {
  const std::pair<const char*, const char*> cases[] = {{"", "NoneType"},
                                                       {"# only a comment\n", "NoneType"},
                                                       {"- a\n", "list"},
                                                       {"word", "str"},
                                                       {"5", "int"}};
  for (const auto& [text, kind] : cases) {
    const Reading reading = read_config_text(text, "f.yaml", no_environment);
    ASSERT_FALSE(reading) << text;
    EXPECT_EQ(to_text(reading.error().problems),
              fmt::format("  f.yaml:1: Expected YAML mapping, got {}\n", kind));
  }
  const Reading large =
      read_config_text(std::string(kConfigBytesMax + 1, '#'), "f.yaml", no_environment);
  ASSERT_FALSE(large);
  EXPECT_THAT(to_text(large.error().problems), HasSubstr("larger than"));
}

TEST(SpecConfig, FilesThatCannotBeReadAreProblems) {
  const Reading missing = read_config_file("/nowhere/c.yaml", no_environment);
  ASSERT_FALSE(missing);
  EXPECT_THAT(to_text(missing.error().problems),
              HasSubstr("Config file not found: /nowhere/c.yaml"));
  const Reading folder = read_config_file("/tmp", no_environment);
  ASSERT_FALSE(folder);
  EXPECT_THAT(to_text(folder.error().problems), HasSubstr("cannot be read"));
}

TEST(SpecConfig, NamesOfDataSetsComeFromTheirPaths) {
  const std::pair<const char*, const char*> cases[] = {{"a/b.tar.gz", "b.tar"},
                                                       {".hidden", ".hidden"},
                                                       {"dir/", "dir"},
                                                       {"a/d.jsonl", "d"},
                                                       {"", ""},
                                                       {"x.", "x."},
                                                       {"..", ".."},
                                                       {"/", ""}};
  for (const auto& [path, name] : cases) {
    EXPECT_EQ(stem_of(path), name) << path;
  }
}

}  // namespace
}  // namespace tutti::spec
