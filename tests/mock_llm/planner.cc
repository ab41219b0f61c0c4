#include "tests/mock_llm/planner.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace tutti::mock_llm {
namespace {

// Names learnt from requests; a server that answers to any name has to remember them.
constexpr std::size_t kModelsMax = 256;
constexpr std::size_t kModelNameMax = 1024;

UsageRule usage_of(const MockOptions& options, const ChatRequest& request) {
  if (options.usage != UsageRule::kAsked) {
    return options.usage;
  }
  if (!request.include_usage) {
    return UsageRule::kOff;
  }
  return request.continuous_usage ? UsageRule::kContinuous : UsageRule::kAsked;
}

Api api_of(Route route) {
  switch (route) {
    case Route::kChat:
      return Api::kChat;
    case Route::kGenerate:
      return Api::kGenerate;
    case Route::kVideos:
      return Api::kVideos;
    default:
      return Api::kCompletions;
  }
}

}  // namespace

Planner::Planner(const MockOptions& options) : options_(options), arrivals_(options.seed) {
  for (const std::string& name : options.models) {
    names_.push_back(name);
    append_json_escaped(escaped_.emplace_back(), name);
  }
}

tl::expected<std::uint16_t, BadRequest> Planner::model_index(std::string_view name) {
  if (name.empty()) {
    return 0;
  }
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) {
    return static_cast<std::uint16_t>(known - names_.begin());
  }
  if (options_.strict_model) {
    return tl::unexpected(BadRequest{404, fmt::format("the model `{}` does not exist", name)});
  }
  if (names_.size() >= kModelsMax || name.size() > kModelNameMax) {
    return tl::unexpected(BadRequest{
        404, fmt::format("this mock remembers {} model names of at most {} bytes; no more",
                         kModelsMax, kModelNameMax)});
  }
  names_.emplace_back(name);
  append_json_escaped(escaped_.emplace_back(), name);
  return static_cast<std::uint16_t>(names_.size() - 1);
}

tl::expected<Fault, BadRequest> Planner::choose_fault(const RequestHead& head,
                                                      const ChatRequest& request,
                                                      std::uint64_t number, double chance) const {
  const std::string_view asked = !head.fault.empty() ? head.fault : request.fault;
  if (asked.empty()) {
    return pick_fault(options_.faults, number, chance);
  }
  const auto fault = parse_fault(asked);
  if (!fault) {
    return tl::unexpected(BadRequest{400, "the fault this request asks for: " + fault.error()});
  }
  return *fault;
}

void Planner::set_length(Exchange& exchange, const ChatRequest& request,
                         RequestDraws& draws) const {
  auto tokens = static_cast<std::uint64_t>(options_.tokens.draw(draws));
  if (options_.text == TextKind::kEcho) {
    exchange.echo = std::make_unique<EchoWords>(split_echo(reader_.echo_text()));
    if (!options_.tokens_given) {
      tokens = exchange.echo->ends.size();
    }
    if (exchange.echo->ends.empty()) {
      tokens = 0;  // nothing to repeat
    }
  }
  const bool chat = exchange.api == Api::kChat;
  const std::uint64_t reasoning = chat ? options_.reasoning_tokens : 0;
  std::uint64_t whole = std::min<std::uint64_t>(tokens + reasoning, kCountMax);
  if (options_.honour_max_tokens && request.max_tokens && *request.max_tokens < whole) {
    whole = *request.max_tokens;
    exchange.capped = true;
  }
  exchange.tokens = static_cast<std::uint32_t>(whole);
  exchange.reasoning = static_cast<std::uint32_t>(std::min(reasoning, whole));
}

tl::expected<Exchange, BadRequest> Planner::plan(const RequestHead& head, std::string_view body,
                                                 std::uint32_t now_unix_s) {
  Exchange exchange;
  exchange.number = ++requests_;
  // Drawn for every request, good or bad, so that one bad request does not shift the others.
  const std::uint64_t arrival_seed = arrivals_.next_bits(64);
  exchange.seed = options_.seed_from_body
                      ? XXH3_64bits_withSeed(body.data(), body.size(), options_.seed)
                      : arrival_seed;
  exchange.api = api_of(head.route);
  exchange.created_unix_s = now_unix_s;
  const auto request = reader_.read(body, exchange.api);
  if (!request) {
    return tl::unexpected(BadRequest{400, request.error()});
  }
  const auto model = model_index(request->model);
  if (!model) {
    return tl::unexpected(model.error());
  }
  RequestDraws draws(exchange.seed);
  const auto fault = choose_fault(head, *request, exchange.number, draws.next_double());
  if (!fault) {
    return tl::unexpected(fault.error());
  }
  exchange.model = *model;
  exchange.fault = *fault;
  exchange.ttft_ns = options_.ttft.draw(draws);
  exchange.gap_ns = options_.gap.draw(draws);
  set_length(exchange, *request, draws);
  exchange.stream = request->stream && fault->kind != FaultKind::kJson;
  exchange.chunked = exchange.stream && head.http11;
  exchange.http11 = head.http11;
  // Without chunks only the end of the connection tells the end of a stream.
  exchange.keep_alive = head.keep_alive && (!exchange.stream || exchange.chunked);
  exchange.usage = usage_of(options_, *request);
  const bool needs_count =
      !exchange.stream || exchange.api == Api::kGenerate || exchange.usage != UsageRule::kOff;
  exchange.prompt_tokens = needs_count ? reader_.prompt_words() : 0;
  return exchange;
}

}  // namespace tutti::mock_llm
