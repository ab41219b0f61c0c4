// Redaction, the written config, templates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/spec/dump.h"
#include "common/spec/read.h"
#include "common/spec/redact.h"
#include "common/spec/yaml_text.h"
#include "common/spec/yaml_writer.h"

namespace tutti::spec {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::optional<std::string> no_environment(const std::string& /*name*/) { return std::nullopt; }

TEST(SpecRedaction, D8SecretsAtAnyDepth) {
  base::Problems none;
  const Tree tree = tree_from_yaml(
      "{extras: {swebench_service_auth_token: {deep: abc}, n: 1}, l: [{password: 1}, "
      "'http://u@h']}",
      "f", none, none);
  EXPECT_EQ(to_json(redacted(tree)),
            R"({"extras":{"swebench_service_auth_token":"<redacted>","n":1},)"
            R"("l":[{"password":"<redacted>"},"http://<redacted>@h"]})");
}

TEST(SpecYamlWriter, QuotesOnlyWhatWouldChangeItsType) {
  const std::pair<const char*, const char*> cases[] = {{"1.0", "'1.0'"},
                                                       {"on", "'on'"},
                                                       {"off", "'off'"},
                                                       {"123", "'123'"},
                                                       {"<redacted>", "<redacted>"},
                                                       {"", "''"},
                                                       {"null", "'null'"},
                                                       {"~", "'~'"},
                                                       {"1e5", "1e5"},
                                                       {"http://h:8000", "http://h:8000"},
                                                       {"a: b", "'a: b'"},
                                                       {"a:", "'a:'"},
                                                       {"a #b", "'a #b'"},
                                                       {"#a", "'#a'"},
                                                       {"- a", "'- a'"},
                                                       {"-", "'-'"},
                                                       {"-a", "-a"},
                                                       {"it's", "it's"},
                                                       {"'q", "'''q'"},
                                                       {" a", "' a'"},
                                                       {"a ", "'a '"},
                                                       {"<<", "'<<'"},
                                                       {"=", "'='"},
                                                       {"[x]", "'[x]'"},
                                                       {"a, b", "a, b"},
                                                       {"\xC3\xA9", "\"\\xE9\""},
                                                       {"a\nb", "\"a\\nb\""},
                                                       {"\xE2\x82\xAC", "\"\\u20AC\""},
                                                       {"\xF0\x9F\x98\x80", "\"\\U0001F600\""},
                                                       {"2026-09-19", "'2026-09-19'"},
                                                       {"---", "'---'"},
                                                       {"1:30", "'1:30'"},
                                                       {"\xFF", "\"\\uFFFD\""},
                                                       {"y", "y"},
                                                       {"?", "'?'"}};
  for (const auto& [in, out] : cases) {
    EXPECT_EQ(yaml_scalar(Tree::of_string(in)), out);
  }
}

TEST(SpecYamlWriter, FloatsReadBackAsFloats) {
  const std::pair<double, const char*> cases[] = {
      {30.0, "30.0"},
      {1e-5, "1.0e-05"},
      {0.1, "0.1"},
      {1e16, "1.0e+16"},
      {1e15, "1000000000000000.0"},
      {-0.25, "-0.25"},
      {0.0, "0.0"},
      {1e-4, "0.0001"},
      {1.5e-7, "1.5e-07"},
      {std::numeric_limits<double>::infinity(), ".inf"}};
  for (const auto& [in, out] : cases) {
    EXPECT_EQ(yaml_float(in), out);
  }
}

Config sample_config() {
  const Reading reading = read_config_text(
      "type: online\nmodel_params: {name: m, temperature: 0.7, seed: 9315206023656308754,\n"
      "  chat_template_kwargs: {a: {b: [1, [2, {c: d}], []]}, e: null, 'on': 'off'}}\n"
      "datasets: ['d.jsonl,parser.prompt=q', {path: e.jsonl, type: accuracy, accuracy_config:\n"
      "  {eval_method: pass_at_1, extras: {my_token: t0k, n: 1}}}]\n"
      "endpoint_config: {endpoints: ['http://u:pw@h:8000'], api_key: s3cret}\n"
      "settings: {load_pattern: {type: poisson, target_qps: 10}, runtime: {n_samples_to_issue: 5,\n"
      "  scheduler_random_seed: 18209322760996052031}}\n"
      "submission_ref: {model: m, ruleset: mlperf-endpoints-current}\n"
      "report_dir: /tmp/r\n",
      "f.yaml", no_environment);
  EXPECT_TRUE(reading) << to_text(reading.error().problems);
  return reading ? reading->config : Config{};
}

TEST(SpecDump, SecretsAreRedactedAndNullsLeftOut) {
  const std::string yaml = config_yaml(sample_config());
  for (const char* secret : {"s3cret", "t0k", "u:pw"}) {
    EXPECT_THAT(yaml, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(yaml, HasSubstr("  api_key: <redacted>\n"));
  EXPECT_THAT(yaml, HasSubstr("  - http://<redacted>@h:8000\n"));
  EXPECT_THAT(yaml, HasSubstr("      my_token: <redacted>\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("null")));
  EXPECT_THAT(yaml, HasSubstr("  profiling: {}\n"));
  EXPECT_THAT(yaml, HasSubstr("version: '1.0'\n"));
  EXPECT_THAT(yaml, HasSubstr("  streaming: 'on'\n"));
  EXPECT_THAT(yaml, HasSubstr("scheduler_random_seed: 10487924139932647040\n"));
  EXPECT_THAT(yaml, HasSubstr("    use_legacy_loadgen_qps_metrics: true\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("distributed")));
  EXPECT_TRUE(yaml.ends_with("enable_cpu_affinity: true\n"));
}

TEST(SpecDump, UnredactedItLoadsAgainToTheSameConfig) {
  const Config config = sample_config();
  const std::string yaml = to_yaml(config_tree(config));
  const Reading again = read_config_text(yaml, "again.yaml", no_environment);
  ASSERT_TRUE(again) << to_text(again.error().problems) << yaml;
  EXPECT_TRUE(same_value(config_tree(again->config), config_tree(config)));
  EXPECT_EQ(to_json(again->config.model_params.chat_template_kwargs),
            R"({"a":{"b":[1,[2,{"c":"d"}],[]]},"on":"off"})");
}

TEST(SpecDump, DistributedIsWrittenWhenItSaysSomething) {
  Config config = sample_config();
  config.distributed.local_agents = 3;
  const std::string yaml = config_yaml(config);
  EXPECT_THAT(yaml, HasSubstr("distributed:\n  agents: []\n"));
  EXPECT_THAT(yaml, HasSubstr("  local_agents: 3\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("request_timeout_s")));
}

TEST(SpecTemplates, EachKindLoadsWithoutProblemsAndNamesNoHost) {
  for (const std::string& kind : template_kinds()) {
    const auto text = template_yaml(kind);
    ASSERT_TRUE(text) << kind;
    const Reading reading = read_config_text(*text, kind, no_environment);
    ASSERT_TRUE(reading) << to_text(reading.error().problems);
    const bool generated = kind != "eval" && kind != "submission";
    EXPECT_EQ(reading->config.settings.client.num_workers, generated ? -1 : 4) << kind;
    if (generated) {
      EXPECT_THAT(reading->warnings, SizeIs(0)) << to_text(reading->warnings);
      EXPECT_THAT(*text, HasSubstr("<MODEL_NAME>"));
    }
  }
  EXPECT_EQ(template_yaml("nothing"), std::nullopt);
  EXPECT_THAT(*template_yaml("online"), HasSubstr("  load_pattern:\n    type: poisson\n"
                                                  "    target_qps: 10.0\n"
                                                  "    use_legacy_loadgen_qps_metrics: true\n"));
  EXPECT_THAT(*template_yaml("offline"), HasSubstr("streaming: 'off'"));
}

}  // namespace
}  // namespace tutti::spec
