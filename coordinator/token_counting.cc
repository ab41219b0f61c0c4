#include "coordinator/token_counting.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/model/model_pack.h"
#include "common/spec/tree_json.h"
#include "common/sys/process.h"

namespace tutti {
namespace {

using report::RowTokens;
using report::TokenCounts;
using text::JsonValue;

constexpr std::size_t kSlice = 64;  // of rows that a thread takes at once
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr base::Duration kTellEvery = base::Duration::seconds(10);

const JsonValue* filled(const JsonValue& cells, std::string_view name) {
  const JsonValue* const cell = cells.find(name);
  return cell != nullptr && !cell->is_null() ? cell : nullptr;
}

// What one thread made of its slices; added up at the end.
struct Tally {
  std::uint64_t replies = 0;
  std::uint64_t by_agents = 0;
  std::uint64_t without_template = 0;
  std::string first_error;

  void fail(const base::Error& error) {
    if (first_error.empty()) {
      first_error = error.message;
    }
  }
};

class Counting {
 public:
  Counting(const model::TokenCounter* counter, const report::RunFacts& facts,
           const ledger::Ledger& ledger, const conduct::RunInput* input, const CountingTerms& terms)
      : counter_(counter),
        facts_(facts),
        ledger_(ledger),
        input_(input),
        terms_(terms),
        rows_(ledger.size()),
        done_(ledger.size()) {
    note_samples();
  }

  TokenCounts run(const base::Clock& clock);

 private:
  bool tracked(const ledger::Fact& fact) const {
    return fact.phase < facts_.phases.size() &&
           facts_.phases[fact.phase].kind == base::PhaseKind::kPerformance &&
           fact.failure != wire::Failure::kTurnSkipped;  // nothing was sent
  }
  void note_samples();
  void work();
  void count_prompt(base::SampleIndex sample, Tally& tally);
  base::Result<std::int64_t> prompt_tokens(const JsonValue& cells) const;
  void count_reply(std::uint64_t at, ledger::Texts& texts, Tally& tally);
  void wait(const base::Clock& clock);
  TokenCounts collect();

  const model::TokenCounter* counter_;
  const report::RunFacts& facts_;
  const ledger::Ledger& ledger_;
  const conduct::RunInput* input_;
  const CountingTerms& terms_;
  const std::int64_t local_seconds_ = model::local_seconds(std::time(nullptr));
  std::vector<base::SampleIndex> samples_;  // distinct, of tracked rows
  std::vector<std::int64_t> by_sample_;     // tokens of its prompt; -1: none, kFailed
  std::vector<RowTokens> rows_;
  std::vector<std::uint8_t> done_;    // by row
  std::atomic<std::size_t> next_{0};  // a slice of samples, then of rows
  std::atomic<std::size_t> counted_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards all_ and running_
  std::condition_variable ended_;
  std::size_t running_ = 0;
  Tally all_;

  static constexpr std::int64_t kFailed = -2;
  static constexpr std::int64_t kUntouched = -3;
};

void Counting::note_samples() {
  if (input_ == nullptr) {
    return;
  }
  for (std::uint64_t i = 0; i < ledger_.size(); ++i) {
    const ledger::Fact& fact = ledger_.fact(i);
    if (!tracked(fact)) {
      continue;
    }
    if (fact.sample >= by_sample_.size()) {
      by_sample_.resize(std::size_t{fact.sample} + 1, -1);
    }
    if (by_sample_[fact.sample] == -1) {
      by_sample_[fact.sample] = kUntouched;
      samples_.push_back(fact.sample);
    }
  }
}

// input_tokens, else token_ids, else messages, else a text prompt: the first that is there counts.
base::Result<std::int64_t> Counting::prompt_tokens(const JsonValue& cells) const {
  for (const char* name : {"input_tokens", "token_ids"}) {
    if (const JsonValue* ids = filled(cells, name); ids != nullptr && ids->is_array()) {
      return static_cast<std::int64_t>(ids->items().size());
    }
  }
  base::Result<std::uint64_t> tokens = 0;
  const JsonValue* const messages = filled(cells, "messages");
  const JsonValue* const prompt = filled(cells, "prompt");
  if (messages != nullptr && messages->is_array() && !messages->items().empty()) {
    model::Conversation talk;
    talk.messages = messages;
    talk.tools = filled(cells, "tools");
    talk.tool_choice = filled(cells, "tool_choice");
    talk.kwargs = terms_.template_kwargs ? &*terms_.template_kwargs : nullptr;
    talk.generation_prompt = true;
    tokens = counter_->prompt(talk, local_seconds_);
  } else if (prompt != nullptr && prompt->is_string() && !prompt->as_string().empty()) {
    tokens = counter_->text(prompt->as_string());
  } else {
    return -1;  // content parts: not counted, as the reference does not
  }
  return tokens ? base::Result<std::int64_t>(static_cast<std::int64_t>(*tokens))
                : tl::unexpected(tokens.error());
}

void Counting::count_prompt(base::SampleIndex sample, Tally& tally) {
  std::optional<data::Row> turn;  // its history is put together for it
  const data::Row* row = input_->row(sample);
  if (row == nullptr && sample < input_->measured_rows()) {
    turn = input_->conversations->row(sample, input_->first_mark);
    row = &*turn;
  }
  const auto tokens = row != nullptr ? prompt_tokens(row->cells) : -1;
  if (!tokens) {
    tally.fail(tokens.error());
  }
  by_sample_[sample] = tokens.value_or(kFailed);
}

void Counting::count_reply(std::uint64_t at, ledger::Texts& texts, Tally& tally) {
  const ledger::Fact& fact = ledger_.fact(at);
  if (!fact.ok() || fact.text_bytes == 0) {
    done_[at] = 1;
    return;
  }
  const auto counted = recorded_tokens(counter_, ledger_, fact, texts);
  if (!counted) {
    tally.fail(counted.error());
    return;
  }
  rows_[at].output = counted->tokens.output;
  rows_[at].after_first = counted->tokens.after_first;
  tally.without_template += counted->tokens.without_template ? 1U : 0U;
  done_[at] = 1;
  ++tally.replies;
  tally.by_agents += counted->by_agent ? 1U : 0U;
}

void Counting::work() {
  Tally tally;
  ledger::Texts texts;
  const std::size_t all = samples_.size() + ledger_.size();
  while (!stop_) {
    const std::size_t from = next_.fetch_add(kSlice);
    if (from >= all) {
      break;
    }
    for (std::size_t i = from; i < std::min(from + kSlice, all) && !stop_; ++i) {
      if (i < samples_.size()) {
        count_prompt(samples_[i], tally);
      } else if (tracked(ledger_.fact(i - samples_.size()))) {
        count_reply(i - samples_.size(), texts, tally);
      }
      ++counted_;
    }
  }
  const std::lock_guard lock(mutex_);
  all_.replies += tally.replies;
  all_.by_agents += tally.by_agents;
  all_.without_template += tally.without_template;
  if (all_.first_error.empty()) {
    all_.first_error = std::move(tally.first_error);
  }
  --running_;
  ended_.notify_one();
}

void Counting::wait(const base::Clock& clock) {
  const base::Instant began_at = clock.mono();
  base::Instant tell_at = began_at + kTellEvery;
  const std::size_t all = samples_.size() + ledger_.size();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kLook, [this] { return running_ == 0; })) {
    const base::Instant now = clock.mono();
    const bool late = terms_.timeout.ns > 0 && now - began_at > terms_.timeout;
    if (late || (terms_.interrupted && terms_.interrupted())) {
      stop_ = true;
    }
    if (now >= tell_at) {
      tell_at = now + kTellEvery;
      base::log_info("tokens",
                     fmt::format("counted {} of {} prompts and replies", counted_.load(), all));
    }
  }
}

TokenCounts Counting::collect() {
  TokenCounts out;
  for (std::uint64_t i = 0; i < rows_.size(); ++i) {
    const ledger::Fact& fact = ledger_.fact(i);
    if (!tracked(fact)) {
      continue;
    }
    const std::int64_t prompt = fact.sample < by_sample_.size() ? by_sample_[fact.sample] : -1;
    rows_[i].prompt = std::max<std::int64_t>(prompt, -1);
    out.pending += done_[i] == 0 || prompt < -1 ? 1U : 0U;
  }
  out.prompts = static_cast<std::uint64_t>(std::count_if(
      samples_.begin(), samples_.end(), [this](auto sample) { return by_sample_[sample] >= 0; }));
  out.rows = std::move(rows_);
  out.replies = all_.replies;
  out.by_agents = all_.by_agents;
  out.without_template = all_.without_template;
  out.first_error = std::move(all_.first_error);
  return out;
}

TokenCounts Counting::run(const base::Clock& clock) {
  running_ = std::max<std::size_t>(terms_.threads, 1);
  std::vector<std::thread> threads;
  for (std::size_t i = running_; i > 0; --i) {
    threads.emplace_back(&Counting::work, this);
  }
  wait(clock);
  for (auto& thread : threads) {
    thread.join();
  }
  return collect();
}

}  // namespace

base::Result<RunTokenizer> open_tokenizer(const std::string& name, bool may_fetch) {
  // A build that could not read it fetches nothing.
  may_fetch = may_fetch && model::has_tokenizers();
  const auto path = may_fetch ? model::fetch_model(name) : model::find_model(name);
  const auto files = path ? model::read_model_files(*path) : tl::unexpected(path.error());
  if (!files) {
    return tl::unexpected(files.error());
  }
  auto counter = model::TokenCounter::open(*files);
  if (!counter) {
    return tl::unexpected(counter.error());
  }
  RunTokenizer out{std::move(*counter), model::pack(*files), {}};
  out.hash = model::content_hash(out.packed);
  return out;
}

base::Result<std::optional<RunTokenizer>> tokenizer_of(const spec::Config& config,
                                                       std::string& why_not) {
  const spec::TokenSource source = config.distributed.token_source;
  const bool named = config.model_params.tokenizer_name.has_value();
  const bool must = source == spec::TokenSource::kTokenizer || named;
  if (source == spec::TokenSource::kUsage || source == spec::TokenSource::kNone) {
    return std::nullopt;
  }
  auto tokenizer =
      open_tokenizer(config.model_params.tokenizer_name.value_or(config.model_params.name), must);
  if (tokenizer) {
    return std::move(*tokenizer);
  }
  if (must) {
    return tl::unexpected(tokenizer.error());
  }
  why_not = tokenizer.error().message;
  if (model::has_tokenizers()) {
    why_not += "; --tokenizer names its folder, or its name at the hub, which is fetched then";
  }
  if (config.distributed.token_counting == spec::TokenCounting::kAgents) {
    return base::fail(base::ExitCode::kSetup,
                      "distributed.token_counting: agents have nothing to count with: " + why_not);
  }
  return std::nullopt;
}

CountingTerms counting_terms(const spec::Config& config) {
  CountingTerms terms;
  const std::int64_t threads = config.settings.metrics_tokenizer_workers;
  terms.threads = threads > 0 ? static_cast<std::size_t>(threads) : sys::usable_cores();
  terms.timeout =
      base::Duration::from_seconds(config.settings.timeouts.metrics_drain_timeout_s.value_or(0));
  if (!config.model_params.chat_template_kwargs.is_null()) {
    if (auto kwargs = text::read_json(spec::to_json(config.model_params.chat_template_kwargs))) {
      terms.template_kwargs = std::move(*kwargs);
    }
  }
  return terms;
}

base::Result<RecordedTokens> recorded_tokens(const model::TokenCounter* counter,
                                             const ledger::Ledger& ledger, const ledger::Fact& fact,
                                             ledger::Texts& texts) {
  if (const auto there = ledger.tokens(fact.phase, fact.seq)) {
    return RecordedTokens{{there->output, there->after_first, there->without_template}, true};
  }
  if (counter == nullptr) {
    return base::fail(base::ExitCode::kSetup,
                      "their agents did not count them, and the tokenizer of "
                      "the run is not here");
  }
  if (auto read = ledger.texts(fact, texts); !read) {
    return tl::unexpected(read.error());
  }
  const wire::OutputText& text = texts.output;
  auto counted =
      model::count_reply(*counter, {text.content_first, text.content_rest, text.reasoning_first,
                                    text.reasoning_rest, text.tool_calls});
  return counted ? base::Result<RecordedTokens>(RecordedTokens{*counted, false})
                 : tl::unexpected(counted.error());
}

TokenCounts count_tokens(const model::TokenCounter* counter, const report::RunFacts& facts,
                         const ledger::Ledger& ledger, const conduct::RunInput* input,
                         const CountingTerms& terms, const base::Clock& clock) {
  return Counting(counter, facts, ledger, input, terms).run(clock);
}

}  // namespace tutti
