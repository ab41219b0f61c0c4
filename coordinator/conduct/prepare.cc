#include "coordinator/conduct/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/log.h"
#include "common/data/request_url.h"
#include "common/plan/count.h"
#include "common/plan/salts.h"
#include "common/spec/redact.h"
#include "common/text/json_read.h"
#include "coordinator/accuracy/tally.h"
#include "coordinator/conduct/conversation_input.h"
#include "coordinator/conduct/harmony_rows.h"
#include "coordinator/conduct/reach.h"

namespace tutti::conduct {
namespace {

using base::ExitCode;

base::Pacing pacing_of(spec::Pattern pattern) {
  switch (pattern) {
    case spec::Pattern::kMaxThroughput:
      return base::Pacing::kBurst;
    case spec::Pattern::kPoisson:
      return base::Pacing::kTimed;
    case spec::Pattern::kConcurrency:
    case spec::Pattern::kAgenticInference:
      break;
  }
  return base::Pacing::kClosedLoop;
}

std::optional<base::Duration> seconds(const std::optional<double>& s) {
  return s ? std::optional(base::Duration::from_seconds(*s)) : std::nullopt;
}

// Null in accuracy-only runs.
base::Result<const spec::DatasetSpec*> performance_dataset(const spec::Order& order) {
  const spec::Config& config = order.config;
  const spec::DatasetSpec* found = nullptr;
  if (order.mode == spec::RunMode::kAcc) {
    return found;
  }
  for (const auto& dataset : config.datasets) {
    if (dataset.type != spec::DatasetType::kPerformance) {
      continue;
    }
    if (found != nullptr) {
      return base::fail(ExitCode::kInput, "Multiple performance datasets not supported: keep one");
    }
    found = &dataset;
  }
  if (found == nullptr) {
    return base::fail(ExitCode::kInput,
                      "At least one performance dataset required: add `datasets: [{path: …}]` or "
                      "--dataset PATH");
  }
  return found;
}

// Text becomes token ids where the model and the API want it so.
base::Status tell_rows(const spec::Config& config, std::int64_t local_seconds,
                       data::Dataset& dataset) {
  return wants_harmony(config) ? tell_in_harmony(config, local_seconds, dataset) : base::Status{};
}

text::JsonValue json_of(const spec::WholeNumber& number) {
  return number.negative ? text::JsonValue::of_int(-static_cast<std::int64_t>(number.magnitude))
                         : text::JsonValue::of_uint(number.magnitude);
}

base::Result<data::BodyParams> body_params(const spec::Config& config,
                                           const spec::DatasetSpec& dataset) {
  const spec::ModelParams& model = dataset.model_params;
  data::BodyParams params;
  params.api = config.endpoint_config.api_type;
  params.model = config.model_params.name;
  params.stream = config.model_params.streaming == spec::Streaming::kOn;
  params.include_usage =
      params.stream && config.distributed.token_source == spec::TokenSource::kUsage;
  params.max_tokens = model.max_new_tokens;
  params.min_tokens = model.min_new_tokens;
  params.skip_special_tokens = model.skip_special_tokens;
  params.temperature = model.temperature;
  if (model.seed) {
    params.seed = json_of(*model.seed);
  }
  params.top_p = model.top_p;
  params.top_k = model.top_k;
  params.repetition_penalty = model.repetition_penalty;
  params.presence_penalty = model.presence_penalty;
  params.frequency_penalty = model.frequency_penalty;
  if (!model.chat_template_kwargs.is_null()) {
    auto kwargs = text::read_json(spec::to_json(model.chat_template_kwargs));
    if (!kwargs) {
      return base::fail(ExitCode::kInput,
                        "model_params.chat_template_kwargs cannot be sent as JSON");
    }
    params.chat_template_kwargs = std::move(*kwargs);
  }
  return params;
}

// The part that warm-up and performance share.
plan::PhaseSpec pattern_spec(const spec::Config& config, std::uint32_t rows) {
  plan::PhaseSpec out;
  out.pacing = pacing_of(config.settings.load_pattern.type);
  out.dataset_rows = rows;
  out.target_qps = config.settings.load_pattern.target_qps.value_or(0);
  out.concurrency =
      static_cast<std::uint32_t>(config.settings.load_pattern.target_concurrency.value_or(0));
  return out;
}

base::Result<PhaseInput> warmup_phase(const spec::Config& config, std::uint32_t rows) {
  const spec::Warmup& warmup = config.settings.warmup;
  const auto seeds = plan::warmup_seeds(warmup.warmup_random_seed);
  if (!seeds) {
    return tl::unexpected(seeds.error());
  }
  PhaseInput phase;
  phase.name = "warmup";
  phase.spec = pattern_spec(config, rows);
  phase.spec.kind = base::PhaseKind::kWarmup;
  phase.spec.total =
      warmup.n_requests ? static_cast<base::Seq>(*warmup.n_requests) : std::max(1U, rows);
  phase.spec.order_seed = seeds->order;
  phase.spec.gap_seed = seeds->gaps;
  phase.spec.salted = warmup.salt;
  phase.spec.salt_seed = seeds->salts;
  phase.drain_timeout = seconds(config.settings.timeouts.warmup_drain_timeout_s);
  return phase;
}

base::Result<PhaseInput> performance_phase(const spec::Config& config, std::uint32_t rows) {
  const spec::Runtime& runtime = config.settings.runtime;
  plan::CountSpec count;
  count.dataset_rows = rows;
  if (runtime.n_samples_to_issue) {
    count.asked = static_cast<std::uint64_t>(*runtime.n_samples_to_issue);
  }
  if (config.settings.load_pattern.type == spec::Pattern::kPoisson) {
    count.target_qps = config.settings.load_pattern.target_qps;
    count.min_issue_ms = runtime.min_issue_duration_ms;
  }
  const auto total = plan::total_samples(count);
  if (!total) {
    return tl::unexpected(total.error());
  }
  PhaseInput phase;
  phase.name = "performance";
  phase.spec = pattern_spec(config, rows);
  phase.spec.kind = base::PhaseKind::kPerformance;
  phase.spec.total = *total;
  phase.spec.order_seed = runtime.dataloader_random_seed;
  phase.spec.gap_seed = runtime.scheduler_random_seed;
  if (runtime.max_issue_duration_ms) {
    phase.issue_cap = base::Duration::millis(*runtime.max_issue_duration_ms);
  }
  phase.drain_timeout = seconds(config.settings.timeouts.performance_drain_timeout_s);
  return phase;
}

// In accuracy-only runs one query at a time. Else as the performance phase, going on where it left
// the gap generator.
PhaseInput accuracy_phase(const spec::Config& config, const AccuracyInput& wanted,
                          base::SampleIndex first_row, const PhaseInput* performance,
                          std::uint64_t gaps_before) {
  const auto rows = static_cast<std::uint32_t>(wanted.dataset.rows.size());
  PhaseInput phase;
  phase.name = wanted.name;
  if (performance != nullptr) {
    phase.spec = pattern_spec(config, rows);
    if (config.settings.load_pattern.type == spec::Pattern::kAgenticInference) {
      phase.spec.pacing = base::Pacing::kBurst;  // its data set has no conversations
    }
  } else {
    phase.spec.pacing = base::Pacing::kClosedLoop;
    phase.spec.concurrency = 1;
    phase.spec.dataset_rows = rows;
  }
  phase.spec.kind = base::PhaseKind::kAccuracy;
  phase.spec.total = base::Seq{rows} * wanted.repeats;
  phase.spec.order = plan::OrderKind::kSequential;
  phase.spec.first_row = first_row;
  phase.spec.gap_seed = config.settings.runtime.scheduler_random_seed;
  phase.spec.gaps_before = gaps_before;
  phase.drain_timeout = seconds(config.settings.timeouts.accuracy_drain_timeout_s);
  return phase;
}

void add_accuracy_phases(const spec::Config& config, RunInput& input) {
  const PhaseInput* performance = nullptr;
  std::optional<PhaseInput> copy;
  std::uint64_t gaps = 0;
  if (!input.phases.empty()) {
    copy = input.phases.back();
    performance = &*copy;
    gaps = plan::gaps_drawn(copy->spec, copy->spec.total);
  }
  auto first_row = static_cast<base::SampleIndex>(input.measured_rows());
  for (AccuracyInput& wanted : input.accuracy) {
    wanted.phase = static_cast<std::uint32_t>(input.phases.size());
    PhaseInput phase = accuracy_phase(config, wanted, first_row, performance, gaps);
    gaps += plan::gaps_drawn(phase.spec, phase.spec.total);
    first_row += phase.spec.dataset_rows;
    input.phases.push_back(std::move(phase));
  }
}

// Warm-up and performance.
base::Status add_measured_phases(const spec::Config& config, const spec::AgenticInference& agentic,
                                 RunInput& input) {
  const std::uint32_t rows = input.measured_rows();
  if (config.settings.warmup.enabled) {
    if (config.settings.warmup.salt) {
      if (input.conversations != nullptr) {
        return base::fail(ExitCode::kInput,
                          "warm-up salt needs text prompts, and a conversation is a list of "
                          "messages; disable it (--no-warmup-salt, or warmup.salt: false)");
      }
      if (auto status = data::check_saltable(input.dataset); !status) {
        return status;
      }
    }
    auto phase = warmup_phase(config, rows);
    if (!phase) {
      return tl::unexpected(phase.error());
    }
    input.phases.push_back(std::move(*phase));
  }
  auto phase = performance_phase(config, rows);
  if (!phase) {
    return tl::unexpected(phase.error());
  }
  input.phases.push_back(std::move(*phase));
  for (PhaseInput& each : input.phases) {
    if (input.conversations == nullptr) {
      continue;
    }
    if (auto status = play(*input.conversations, agentic, each.spec); !status) {
      return status;
    }
    each.ends_with_first_user = agentic.stop_issuing_on_first_user_complete &&
                                each.spec.kind == base::PhaseKind::kPerformance;
  }
  return {};
}

base::Status add_phases(const spec::Order& order, const spec::DatasetSpec* performance,
                        RunInput& input) {
  if (performance != nullptr) {
    if (auto status = add_measured_phases(order.config, performance->agentic_inference, input);
        !status) {
      return status;
    }
  }
  add_accuracy_phases(order.config, input);
  for (const auto& each : input.phases) {
    if (const auto problems = plan::check(each.spec); !problems.empty()) {
      return base::fail(ExitCode::kInput, fmt::format("the {} phase cannot be scheduled:\n{}",
                                                      each.name, spec::to_text(problems)));
    }
  }
  return {};
}

std::vector<std::uint32_t> lowest_terms(const std::vector<std::int64_t>& weights) {
  std::int64_t divisor = 0;
  for (const std::int64_t weight : weights) {
    divisor = std::gcd(divisor, weight);
  }
  std::vector<std::uint32_t> out;
  for (const std::int64_t weight : weights) {
    out.push_back(static_cast<std::uint32_t>(weight / divisor));
  }
  return out;
}

std::optional<std::uint64_t> count_or_automatic(std::int64_t value) {
  return value < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(value));
}

}  // namespace

wire::TargetSpec target_of(const spec::Config& config) {
  wire::TargetSpec target;
  const auto& endpoint = config.endpoint_config;
  for (const auto& url : endpoint.endpoints) {
    target.urls.push_back(data::request_url(url, endpoint.api_type));
  }
  target.api = endpoint.api_type;
  target.streaming = config.model_params.streaming == spec::Streaming::kOn;
  target.stamp_every_chunk = target.streaming && config.settings.client.stream_all_chunks;
  if (endpoint.api_key && !endpoint.api_key->empty()) {
    target.headers.push_back({"Authorization", "Bearer " + *endpoint.api_key});
  }
  target.headers.push_back({"Content-Type", "application/json"});
  target.headers.push_back({"Accept", target.streaming ? "text/event-stream" : "application/json"});
  target.verify_tls = !config.settings.client.insecure;
  target.balance = config.distributed.balance;
  target.way = config.distributed.transport;
  target.weights = lowest_terms(config.distributed.weights);
  target.affinity_header = config.distributed.affinity_header.value_or("");
  target.source_addresses = config.distributed.source_addresses;
  target.connect_rate_max = static_cast<std::uint32_t>(config.distributed.connect_rate_max);
  target.connect_timeout = base::Duration::from_seconds(config.distributed.connect_timeout_s);
  target.request_timeout =
      base::Duration::from_seconds(config.distributed.request_timeout_s.value_or(0));
  target.idle_connection_max = base::Duration::from_seconds(config.settings.client.max_idle_time);
  add_reach(config, target);
  return target;
}

namespace {

base::Status add_bodies(const data::Dataset& dataset, const data::BodyParams& params,
                        data::BodySetWriter& writer) {
  data::RenderedBody body;
  for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
    data::render_body(dataset.rows[i], params, body);
    if (auto status = writer.add(body.bytes, body.splice); !status) {
      return base::fail(status.error().code,
                        fmt::format("{}: {}", dataset.where(i), status.error().message));
    }
    if ((i + 1) % data::kProgressRows == 0) {
      base::log_info("dataset",
                     fmt::format("{} of {} requests rendered so far", i + 1, dataset.rows.size()));
    }
  }
  return {};
}

base::Result<data::BodySet> finished(data::BodySetWriter& writer, const std::string& path) {
  const auto info = writer.finish();
  if (!info) {
    return tl::unexpected(info.error());
  }
  return data::BodySet::open(path, info->hash);
}

// All data sets of the run, one after another.
base::Result<data::BodySet> write_all_bodies(const spec::Config& config, const RunInput& input,
                                             const spec::DatasetSpec* performance,
                                             const std::vector<accuracy::Scored>& scored) {
  auto writer = data::BodySetWriter::create(input.bodies_path);
  if (!writer) {
    return tl::unexpected(writer.error());
  }
  const auto add = [&](const data::Dataset& dataset, const spec::DatasetSpec& of) -> base::Status {
    const auto params = body_params(config, of);
    return params ? add_bodies(dataset, *params, *writer) : tl::unexpected(params.error());
  };
  base::Status status;
  if (performance != nullptr) {
    const auto params = body_params(config, *performance);
    status = !params || input.conversations == nullptr
                 ? add(input.dataset, *performance)
                 : write_turns(*input.conversations, *params, *writer);
  }
  for (std::size_t i = 0; i < scored.size() && status; ++i) {
    status = add(input.accuracy[i].dataset, config.datasets[scored[i].dataset]);
  }
  if (!status) {
    return tl::unexpected(status.error());
  }
  return finished(*writer, input.bodies_path);
}

// Rows whose answer can never be right are worth a word before the run.
void note_bad_truths(const AccuracyInput& wanted, std::vector<std::string>& notes) {
  std::uint64_t bad = 0;
  std::string first;
  for (const text::JsonValue& truth : wanted.dataset.truths) {
    std::string why = accuracy::why_never_right(wanted.method, truth);
    bad += why.empty() ? 0U : 1U;
    first = first.empty() ? std::move(why) : first;
  }
  if (bad > 0) {
    notes.push_back(fmt::format("data set {}: {} of {} rows can never be right: {}", wanted.name,
                                bad, wanted.dataset.rows.size(), first));
  }
}

// What ROUGE finds sentences by, once; that it is not here is said before the run.
void find_sentences(const AccuracyInput& wanted, RunInput& input) {
  if (wanted.method.rule != accuracy::Rule::kRouge || input.punkt != nullptr) {
    return;
  }
  if (auto punkt = load_punkt(); punkt) {
    input.punkt = std::move(*punkt);
  } else {
    input.notes.push_back(fmt::format("data set {}: rougeLsum and gen_len will be missing: {}",
                                      wanted.name, punkt.error().message));
  }
}

base::Status read_accuracy(const spec::Config& config, const std::vector<accuracy::Scored>& scored,
                           std::int64_t local_seconds, RunInput& input) {
  for (const accuracy::Scored& each : scored) {
    auto made = read_accuracy_set(config, each);
    if (!made) {
      return tl::unexpected(made.error());
    }
    if (auto status = tell_rows(config, local_seconds, made->dataset); !status) {
      return status;
    }
    for (const std::string& note : made->dataset.notes) {
      input.notes.push_back(fmt::format("data set {}: {}", made->name, note));
    }
    note_bad_truths(*made, input.notes);
    find_sentences(*made, input);
    input.accuracy.push_back(std::move(*made));
  }
  return {};
}

}  // namespace

std::uint32_t RunInput::measured_rows() const {
  return static_cast<std::uint32_t>(conversations != nullptr ? conversations->samples().size()
                                                             : dataset.rows.size());
}

const data::Row* RunInput::row(base::SampleIndex sample) const {
  std::size_t at = sample;
  if (at < dataset.rows.size()) {
    return &dataset.rows[at];
  }
  if (at < measured_rows()) {
    return nullptr;
  }
  at -= measured_rows();
  for (const AccuracyInput& each : accuracy) {
    if (at < each.dataset.rows.size()) {
      return &each.dataset.rows[at];
    }
    at -= each.dataset.rows.size();
  }
  return nullptr;
}

std::vector<std::string> force_single_stream(spec::Config& config) {
  std::vector<std::string> out;
  const auto force = [&out](std::int64_t& value, const char* field) {
    if (value != 1) {
      out.push_back(fmt::format("accuracy only: {} is 1 instead of {}", field, value));
      value = 1;
    }
  };
  force(config.settings.client.num_workers, "settings.client.num_workers");
  force(config.settings.client.max_connections, "settings.client.max_connections");
  if (auto& concurrency = config.settings.load_pattern.target_concurrency) {
    force(*concurrency, "settings.load_pattern.target_concurrency");
  }
  return out;
}

base::Result<data::BodySet> write_bodies(const data::Dataset& dataset,
                                         const data::BodyParams& params, const std::string& path) {
  auto writer = data::BodySetWriter::create(path);
  if (!writer) {
    return tl::unexpected(writer.error());
  }
  if (auto status = add_bodies(dataset, params, *writer); !status) {
    return tl::unexpected(status.error());
  }
  return finished(*writer, path);
}

base::Result<RunInput> prepare(const spec::Order& order, const std::string& folder,
                               std::int64_t local_seconds) {
  const spec::Config& config = order.config;
  const auto wanted = performance_dataset(order);
  if (!wanted) {
    return tl::unexpected(wanted.error());
  }
  const auto scored = accuracy::choose_methods(config, order.mode);
  if (!scored) {
    return base::fail(ExitCode::kInput,
                      "Accuracy cannot be scored:\n" + spec::to_text(scored.error()));
  }
  RunInput input;
  if (auto status = read_accuracy(config, *scored, local_seconds, input); !status) {
    return tl::unexpected(status.error());
  }
  if (*wanted != nullptr && (*wanted)->agentic_inference.present) {
    auto conversations = read_conversations(**wanted);
    if (!conversations) {
      return tl::unexpected(conversations.error());
    }
    input.conversations = std::move(*conversations);
    input.scores_turns = accuracy::scores_turns(config, order.mode);
    if ((*wanted)->agentic_inference.enable_salt) {
      input.first_mark = plan::mark_text(plan::pass_mark(1));
    }
    const auto& notes = input.conversations->notes();
    input.notes.insert(input.notes.end(), notes.begin(), notes.end());
  } else if (*wanted != nullptr) {
    auto dataset = read_dataset(config, **wanted);
    if (!dataset) {
      return tl::unexpected(dataset.error());
    }
    if (auto status = tell_rows(config, local_seconds, *dataset); !status) {
      return tl::unexpected(status.error());
    }
    input.dataset = std::move(*dataset);
    input.notes.insert(input.notes.end(), input.dataset.notes.begin(), input.dataset.notes.end());
    const auto params = body_params(config, **wanted);
    if (const std::string note = params ? data::note_of_unsent(*params) : ""; !note.empty()) {
      input.notes.push_back(note);
    }
  }
  for (const auto& url : config.endpoint_config.endpoints) {
    if (data::doubles_version(url)) {
      input.notes.push_back(fmt::format(
          "endpoint {} ends in /v1 and will be asked at …/v1/v1/…: give the server's root",
          spec::redact_url(url)));
    }
  }
  if (auto status = add_phases(order, *wanted, input); !status) {
    return tl::unexpected(status.error());
  }
  input.bodies_path = folder + "/.bodies";
  auto bodies = write_all_bodies(config, input, *wanted, *scored);
  if (!bodies) {
    return tl::unexpected(bodies.error());
  }
  input.bodies = std::move(*bodies);
  input.target = target_of(config);
  if (auto status = read_certificates(config.distributed, input.target); !status) {
    return tl::unexpected(status.error());
  }
  if (input.conversations != nullptr) {
    route((*wanted)->agentic_inference, input.target);
  }
  input.connections_max = count_or_automatic(config.settings.client.max_connections);
  input.connections_warm = count_or_automatic(config.settings.client.warmup_connections);
  return input;
}

}  // namespace tutti::conduct
