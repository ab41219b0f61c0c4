#include "coordinator/report/run_note.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "coordinator/ledger/ledger.h"

namespace tutti::report {
namespace {

using Json = nlohmann::json;

constexpr int kLayout = 1;

Json config_json(const ConfigFacts& config) {
  const LoadPatternFacts& pattern = config.load_pattern;
  const WarmupFacts& warmup = config.warmup;
  Json out{{"pattern", pattern.type},
           {"legacy_qps_window", pattern.use_legacy_qps_window},
           {"warmup", warmup.enabled},
           {"warmup_salt", warmup.salt},
           {"warmup_drain", warmup.drain},
           {"warmup_seed", warmup.random_seed},
           {"scheduler_seed", config.scheduler_random_seed},
           {"dataloader_seed", config.dataloader_random_seed},
           {"streaming", config.streaming},
           {"early_stopping", config.early_stopping},
           {"stream_all_chunks", config.stream_all_chunks},
           {"kernel_stamps", config.kernel_stamps},
           {"reach", config.reach},
           {"token_source", static_cast<int>(config.token_source)},
           {"tokenizer", config.tokenizer},
           {"model_hash", config.model_hash},
           {"balance", static_cast<int>(config.balance)},
           {"endpoints", config.endpoints}};
  if (pattern.target_qps) {
    out["target_qps"] = *pattern.target_qps;
  }
  if (pattern.target_concurrency) {
    out["target_concurrency"] = *pattern.target_concurrency;
  }
  if (warmup.n_requests) {
    out["warmup_requests"] = *warmup.n_requests;
  }
  return out;
}

template <class E>
E enum_of(const Json& in, E last) {
  const int value = in.get<int>();
  if (value < 0 || value > static_cast<int>(last)) {
    throw Json::other_error::create(599, "a number that is not a name", &in);
  }
  return static_cast<E>(value);
}

ConfigFacts config_of(const Json& in) {
  ConfigFacts out;
  out.load_pattern.type = in.at("pattern").get<std::string>();
  out.load_pattern.use_legacy_qps_window = in.at("legacy_qps_window").get<bool>();
  if (in.contains("target_qps")) {
    out.load_pattern.target_qps = in.at("target_qps").get<double>();
  }
  if (in.contains("target_concurrency")) {
    out.load_pattern.target_concurrency = in.at("target_concurrency").get<std::uint64_t>();
  }
  out.warmup.enabled = in.at("warmup").get<bool>();
  if (in.contains("warmup_requests")) {
    out.warmup.n_requests = in.at("warmup_requests").get<std::int64_t>();
  }
  out.warmup.salt = in.at("warmup_salt").get<bool>();
  out.warmup.drain = in.at("warmup_drain").get<bool>();
  out.warmup.random_seed = in.at("warmup_seed").get<std::uint64_t>();
  out.scheduler_random_seed = in.at("scheduler_seed").get<std::uint64_t>();
  out.dataloader_random_seed = in.at("dataloader_seed").get<std::uint64_t>();
  out.streaming = in.at("streaming").get<bool>();
  out.early_stopping = in.at("early_stopping").get<bool>();
  out.stream_all_chunks = in.at("stream_all_chunks").get<bool>();
  out.kernel_stamps = in.at("kernel_stamps").get<bool>();
  out.reach = in.at("reach").get<std::string>();
  out.token_source = enum_of(in.at("token_source"), TokenSource::kTokenizer);
  out.tokenizer = in.at("tokenizer").get<std::string>();
  out.model_hash = in.value("model_hash", std::string());
  out.balance = enum_of(in.at("balance"), base::Balance::kAffinity);
  out.endpoints = in.at("endpoints").get<std::vector<std::string>>();
  return out;
}

RunFacts facts_of(const Json& in) {
  RunFacts out;
  out.run.high = in.at("run").at(0).get<std::uint64_t>();
  out.run.low = in.at("run").at(1).get<std::uint64_t>();
  out.version = in.at("version").get<std::string>();
  out.started_wall_ns = in.at("started_wall_ns").get<std::int64_t>();
  out.started_at = base::Instant{in.at("started_at_ns").get<std::int64_t>()};
  out.config = config_of(in.at("config"));
  for (const Json& phase : in.at("phases")) {
    PhaseFacts facts;
    facts.name = phase.at("name").get<std::string>();
    facts.kind = enum_of(phase.at("kind"), base::PhaseKind::kAccuracy);
    facts.pacing = enum_of(phase.at("pacing"), base::Pacing::kClosedLoop);
    facts.first_row = phase.value("first_row", base::SampleIndex{0});
    facts.plays = phase.value("plays", false);
    out.phases.push_back(std::move(facts));
  }
  const auto agents = in.at("agents").get<std::uint64_t>();
  if (agents > ledger::kAgentMax) {
    throw Json::other_error::create(599, "more agents than there can be", &in);
  }
  out.agents.resize(static_cast<std::size_t>(agents));
  return out;
}

}  // namespace

std::string run_note(const RunFacts& facts) {
  Json phases = Json::array();
  for (const PhaseFacts& phase : facts.phases) {
    phases.push_back({{"name", phase.name},
                      {"kind", static_cast<int>(phase.kind)},
                      {"pacing", static_cast<int>(phase.pacing)},
                      {"first_row", phase.first_row},
                      {"plays", phase.plays}});
  }
  const Json out{{"layout", kLayout},
                 {"run", {facts.run.high, facts.run.low}},
                 {"version", facts.version},
                 {"started_wall_ns", facts.started_wall_ns},
                 {"started_at_ns", facts.started_at.ns},
                 {"config", config_json(facts.config)},
                 {"phases", std::move(phases)},
                 {"agents", facts.agents.size()}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<RunFacts> read_run_note(std::string_view text) {
  try {
    const Json in = Json::parse(text);
    if (in.at("layout") != kLayout) {
      return base::fail(base::ExitCode::kInput,
                        fmt::format("a run's note of layout {}; this program reads {}",
                                    in.at("layout").dump(), kLayout));
    }
    return facts_of(in);
  } catch (const Json::exception& e) {
    return base::fail(base::ExitCode::kInput, fmt::format("a run's note: {}", e.what()));
  }
}

}  // namespace tutti::report
