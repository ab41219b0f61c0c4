// Rules with material of their own: per-data-set parameters, the rule sets' seeds, agents'
// addresses.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "common/spec/bind.h"
#include "common/spec/rules.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

struct Ruleset {
  std::string_view name;
  std::uint64_t scheduler_seed;
  std::uint64_t sample_seed;
};

// Seeds the rules of MLPerf publish; a run under a rule set uses these and no others.
constexpr std::array<Ruleset, 7> kRulesets{{
    {"mlperf-inference-v5.1", 18209322760996052031ULL, 14771362308971278857ULL},
    {"mlperf-inference-v6.1", 16159082839903944936ULL, 2747215439041700203ULL},
    {"mlcommons-current", 16159082839903944936ULL, 2747215439041700203ULL},
    {"mlperf-edge-v0.1", 42, 42},
    {"mlperf-edge-current", 42, 42},
    {"mlperf-endpoints-v1.0-2026-10-C1-A", 10487924139932647040ULL, 586478644936801402ULL},
    {"mlperf-endpoints-current", 10487924139932647040ULL, 586478644936801402ULL},
}};

void check_token_bounds(const ModelParams& params, const std::string& where,
                        const std::string& field, Findings& findings) {
  if (params.min_new_tokens > params.max_new_tokens && findings.is_clean(field)) {
    findings.wrong_at(
        where, field + ".min_new_tokens",
        fmt::format("min_new_tokens {} must be less than or equal to max_new_tokens {}",
                    params.min_new_tokens, params.max_new_tokens));
  }
}

// Keys an override may hold; names the ones it may not.
bool check_override_keys(const Tree& override_tree, const std::string& field, Findings& findings) {
  static constexpr std::array<std::string_view, 3> kPerRun{"name", "streaming", "tokenizer_name"};
  const Schema& schema = config_schema();
  std::vector<std::string> valid;
  for (const Row* row : schema.children("model_params")) {
    valid.emplace_back(leaf_of(row->path));
  }
  std::sort(valid.begin(), valid.end());
  bool good = true;
  for (const Tree::Entry& entry : override_tree.entries) {
    const std::string path = fmt::format("{}.{}", field, entry.key);
    if (std::find(valid.begin(), valid.end(), entry.key) == valid.end()) {
      findings.wrong_at(entry.where, path,
                        fmt::format("unknown key; valid are {}", joined(valid, ", ")));
      good = false;
    } else if (std::find(kPerRun.begin(), kPerRun.end(), entry.key) != kPerRun.end()) {
      findings.wrong_at(entry.where, path,
                        "is not honored per dataset; set it under model_params for the whole run");
      good = false;
    }
  }
  return good;
}

std::string address_problem(std::string_view address, bool takes_any_port = false) {
  constexpr std::string_view kWanted = "must look like tcp://HOST:PORT";
  if (address.starts_with("ipc://")) {
    return address.size() > 6 ? "" : "has no path after ipc://";
  }
  if (!address.starts_with("tcp://")) {
    return std::string(kWanted);
  }
  const std::string_view rest = address.substr(6);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::string(kWanted);
  }
  const std::string_view host = rest.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (host.find_first_of(" /@") != std::string_view::npos ||
      (!bracketed && host.find(':') != std::string_view::npos)) {
    return std::string(kWanted);
  }
  const std::string_view port = rest.substr(colon + 1);
  if (takes_any_port && port == "*") {
    return "";
  }
  unsigned number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == port.data() + port.size();
  return whole && number >= 1 && number <= 65535 ? "" : "must end with a port from 1 to 65535";
}

void check_addresses(const Tree& tree, const Distributed& distributed, Findings& findings) {
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < distributed.agents.size(); ++i) {
    const std::string field = fmt::format("distributed.agents.{}", i);
    std::string problem = address_problem(distributed.agents[i]);
    if (problem.empty() &&
        std::find(seen.begin(), seen.end(), distributed.agents[i]) != seen.end()) {
      problem = "is listed twice";
    }
    if (!problem.empty()) {
      findings.wrong_at(
          place_of(tree, field), field,
          fmt::format("'{}' {}", shown(field, Tree::of_string(distributed.agents[i])), problem));
    }
    seen.push_back(distributed.agents[i]);
  }
  if (distributed.listen) {
    const std::string field = "distributed.listen";
    const std::string problem = address_problem(*distributed.listen, true);
    if (!problem.empty()) {
      findings.wrong_at(
          place_of(tree, field), field,
          fmt::format("'{}' {}", shown(field, Tree::of_string(*distributed.listen)), problem));
    }
  }
}

}  // namespace

void apply_overrides(const Tree& tree, Config& config, Findings& findings) {
  static const Tree kEmpty = Tree::map();
  const Tree* given = tree.find("model_params");
  const Tree& base = given != nullptr && given->is_map() ? *given : kEmpty;
  check_token_bounds(config.model_params, place_of(tree, "model_params.min_new_tokens"),
                     "model_params", findings);
  const bool base_is_clean = findings.is_clean("model_params");
  for (std::size_t i = 0; i < config.datasets.size(); ++i) {
    DatasetSpec& dataset = config.datasets[i];
    dataset.model_params = config.model_params;
    const Tree& override_tree = dataset.generation_config_override;
    const std::string field = fmt::format("datasets.{}.generation_config_override", i);
    if (!override_tree.is_map() || !check_override_keys(override_tree, field, findings) ||
        !base_is_clean) {
      continue;
    }
    Config whole;
    Findings inner;
    bind({config_schema(), &whole, "model_params", field}, merged(base, override_tree), inner);
    findings.problems.insert(findings.problems.end(), inner.problems.begin(), inner.problems.end());
    for (base::Problem& warning : inner.warnings) {
      if (override_tree.find(split(warning.field, '.').back()) != nullptr) {
        findings.warnings.push_back(std::move(warning));
      }
    }
    whole.model_params.name = config.model_params.name;
    whole.model_params.streaming = config.model_params.streaming;
    check_token_bounds(whole.model_params, place_of(tree, field), field, findings);
    dataset.model_params = std::move(whole.model_params);
  }
}

void pin_seeds(const Tree& tree, Config& config, Findings& findings) {
  if (!config.submission_ref.present) {
    if (config.type == TestType::kSubmission && findings.is_clean("type") &&
        findings.is_clean("submission_ref")) {
      findings.warn_at(
          place_of(tree, "type"), "submission_ref",
          "is missing: a submission's rule set pins its seeds, this run keeps its own");
    }
    return;
  }
  if (!findings.is_clean("submission_ref")) {
    return;
  }
  const std::string& name = config.submission_ref.ruleset;
  const auto* found =
      std::find_if(kRulesets.begin(), kRulesets.end(),
                   [&name](const Ruleset& ruleset) { return ruleset.name == name; });
  if (found != kRulesets.end()) {
    config.settings.runtime.scheduler_random_seed = found->scheduler_seed;
    config.settings.runtime.dataloader_random_seed = found->sample_seed;
    config.settings.warmup.warmup_random_seed = found->sample_seed;
    return;
  }
  std::vector<std::string> names;
  for (const Ruleset& ruleset : kRulesets) {
    names.emplace_back(ruleset.name);
  }
  const std::string field = "submission_ref.ruleset";
  const std::string message = fmt::format("'{}' is not registered; known are {}",
                                          shown(field, Tree::of_string(name)), joined(names, ", "));
  if (config.type == TestType::kSubmission) {
    findings.wrong_at(place_of(tree, field), field,
                      message + "; a submission must pin official RNG seeds");
  } else {
    findings.warn_at(place_of(tree, field), field, message + "; the seeds stay as they are");
  }
}

void check_distributed(const Tree& tree, Config& config, Findings& findings) {
  if (!findings.is_clean("distributed")) {
    return;
  }
  Distributed& distributed = config.distributed;
  const auto dialled = static_cast<std::int64_t>(distributed.agents.size());
  const auto wrong = [&](std::string_view field, std::string remedy) {
    findings.wrong_at(place_of(tree, field), field, std::move(remedy));
  };
  check_addresses(tree, distributed, findings);
  check_frontends(tree, config, findings);
  check_reach(tree, config, findings);
  if (distributed.listen && distributed.expect <= dialled) {
    wrong("distributed.expect",
          fmt::format("must say how many agents to wait for when listen is set: {} or more",
                      dialled + 1));
  }
  if (distributed.rendezvous && !distributed.listen) {
    wrong("distributed.rendezvous", "needs listen: without it there is no address to tell");
  }
  if (!distributed.listen && distributed.expect != 0 && distributed.expect != dialled) {
    wrong("distributed.expect",
          dialled == 0
              ? "needs listen or agents: nobody else can join"
              : fmt::format("must be {}, the number of agents, unless listen is set", dialled));
  }
  if (distributed.keys.has_value() != distributed.agent_keys.has_value()) {
    const bool ours = distributed.keys.has_value();
    wrong(ours ? "distributed.keys" : "distributed.agent_keys",
          ours ? "needs agent_keys: the public keys of the agents"
               : "needs keys: the key pair of this coordinator (tutti keys new FILE)");
  }
  if (distributed.lost_after_s < 2 * distributed.heartbeat_s) {
    wrong("distributed.lost_after_s", fmt::format("must be at least twice heartbeat_s: {} or more",
                                                  2 * distributed.heartbeat_s));
  }
  const bool tokenizer = distributed.token_source == TokenSource::kAuto ||
                         distributed.token_source == TokenSource::kTokenizer;
  if (distributed.token_counting == TokenCounting::kAgents && !tokenizer) {
    wrong("distributed.token_counting",
          "agents count with a tokenizer, and token_source says that none counts; set that to "
          "tokenizer, or leave token_counting out");
  }
  distributed.expect = std::max(distributed.expect, dialled);
}

}  // namespace tutti::spec
