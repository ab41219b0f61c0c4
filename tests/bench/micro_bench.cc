// What one step of the hot path and of the coordinator's path costs by itself. Only ratios between
// rows of one run mean anything on a shared machine; counts of instructions come from tests/bench/
// ratios. Record batches on the wire are wire_bench's.

#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/record/recorder.h"
#include "agent/target/reply.h"
#include "agent/target/reply_event.h"
#include "common/base/ring.h"
#include "common/plan/schedule.h"
#include "common/stats/live_histogram.h"
#include "common/text/sse.h"
#include "coordinator/ledger/ledger.h"
#include "tests/property/wire_random.h"

namespace tutti::bench {
namespace {

constexpr std::size_t kBatchRows = 256;

// A chunk as servers send it, 220 bytes with its frame.
std::string chunk_json(std::string_view text) {
  std::string json =
      R"({"id":"chatcmpl-00000000000000c0ffee","object":"chat.completion.chunk",)"
      R"("created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":")";
  json += text;
  return json + R"("},"logprobs":null,"finish_reason":null}]})";
}

std::string event_of(const std::string& json) { return "data: " + json + "\n\n"; }

// ---- reading a reply

void sse_event(benchmark::State& state) {
  const std::string event = event_of(chunk_json(" hello"));
  text::SseParser parser;
  std::size_t bytes = 0;
  for (auto _ : state) {
    parser.feed(event, [&bytes](const text::SseEvent& e) { bytes += e.data.size(); });
  }
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(sse_event);

// The event comes in two reads: the first line's start must be kept.
void sse_event_in_two_reads(benchmark::State& state) {
  const std::string event = event_of(chunk_json(" hello"));
  const std::string_view whole = event;
  text::SseParser parser;
  std::size_t bytes = 0;
  const auto sink = [&bytes](const text::SseEvent& e) { bytes += e.data.size(); };
  for (auto _ : state) {
    parser.feed(whole.substr(0, 100), sink);
    parser.feed(whole.substr(100), sink);
  }
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(sse_event_in_two_reads);

// The fast road: the chunk equals the last one but for its text.
void event_by_template(benchmark::State& state) {
  const std::string json = chunk_json(" hello");
  target::EventTemplate known;
  known.learn(json,
              target::read_event(json, base::ApiType::kOpenAiChat, target::EventShape::kChunk),
              base::ApiType::kOpenAiChat);
  target::TextKind kind{};
  std::string_view text;
  for (auto _ : state) {
    if (!known.match(json, kind, text)) {
      state.SkipWithError("the chunk was not learnt");
      break;
    }
    benchmark::DoNotOptimize(text);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_by_template);

// The road it falls back to, and is checked against.
void event_by_dom(benchmark::State& state) {
  const std::string json = chunk_json(" hello");
  for (auto _ : state) {
    const auto facts =
        target::read_event(json, base::ApiType::kOpenAiChat, target::EventShape::kChunk);
    benchmark::DoNotOptimize(facts.content);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_by_dom);

// Both in place: body bytes of a stream of 64 chunks to a finished record. `varied`: every chunk
// has another `id`, so that none equals the last and each is parsed whole.
void reply_of_64_chunks(benchmark::State& state) {
  std::vector<std::string> events;
  for (int i = 0; i < 64; ++i) {
    std::string json = chunk_json(" hello");
    if (state.range(0) != 0) {
      json.replace(json.find("c0ffee"), 6, std::to_string(100'000 + i));
    }
    events.push_back(event_of(json));
  }
  target::Reply reply(base::ApiType::kOpenAiChat);
  wire::Record record;
  for (auto _ : state) {
    reply.start(true, false);
    reply.on_header(200, "text/event-stream");
    for (const auto& event : events) {
      reply.on_body(event, base::Instant{1});
    }
    reply.on_body("data: [DONE]\n\n", base::Instant{2});
    reply.on_end(target::EndKind::kComplete, base::Instant{3}, record);
  }
  if (record.content_events != 64) {
    state.SkipWithError("not 64 content events");
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(reply_of_64_chunks)->ArgName("varied")->Arg(0)->Arg(1);

// ---- from worker to session

void record_through_the_ring(benchmark::State& state) {
  record::Recorder recorder(1024);
  wire::RandomMessages random(1);
  auto record =
      std::make_unique<wire::Record>(random.usual_record(1, base::Instant{1'000'000'000}));
  record->output.content_rest.assign(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) {
    auto read = recorder.add(record) ? recorder.take() : nullptr;
    if (!read) {
      state.SkipWithError("the ring lost a record");
      break;
    }
    recorder.give_back(std::move(read));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(record_through_the_ring)->ArgName("text_bytes")->Arg(0)->Arg(1000);

void bare_ring(benchmark::State& state) {
  base::SpscRing<std::uint64_t> ring(1024);
  std::uint64_t value = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.push(std::move(value)));
    benchmark::DoNotOptimize(ring.pop(value));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(bare_ring);

void live_histogram_add(benchmark::State& state) {
  stats::LiveHistogram histogram;
  base::Mt19937 random(1);
  std::vector<std::int64_t> values;
  for (int i = 0; i < 4096; ++i) {
    values.push_back(static_cast<std::int64_t>(random.below(2'000'000'000)));
  }
  std::size_t i = 0;
  for (auto _ : state) {
    histogram.add(values[i++ & 4095]);
  }
  benchmark::DoNotOptimize(histogram.count());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(live_histogram_add);

// ---- the coordinator's side

void schedule_draw(benchmark::State& state, base::Pacing pacing, bool salted) {
  plan::PhaseSpec spec;
  spec.pacing = pacing;
  spec.total = 1'000'000'000'000;
  spec.dataset_rows = 10'000;
  spec.order_seed = spec.gap_seed = spec.salt_seed = 42;
  spec.target_qps = pacing == base::Pacing::kTimed ? 5'000 : 0;
  spec.concurrency = pacing == base::Pacing::kClosedLoop ? 512 : 0;
  spec.salted = salted;
  if (!plan::check(spec).empty()) {
    state.SkipWithError("the phase is not valid");
    return;
  }
  plan::Schedule schedule(spec);
  for (auto _ : state) {
    benchmark::DoNotOptimize(schedule.next());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(schedule_draw, closed_loop, base::Pacing::kClosedLoop, false);
BENCHMARK_CAPTURE(schedule_draw, closed_loop_salted, base::Pacing::kClosedLoop, true);
BENCHMARK_CAPTURE(schedule_draw, poisson, base::Pacing::kTimed, false);

// New records each time: the ledger grows as in a run, so the repeats are bounded.
void ledger_accepts_256(benchmark::State& state) {
  char folder[] = "/tmp/tutti-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) {
    state.SkipWithError("no folder in /tmp");
    return;
  }
  auto ledger = ledger::Ledger::open(folder);
  wire::RandomMessages random(1);
  wire::RecordBatch batch;
  for (base::Seq seq = 0; seq < kBatchRows; ++seq) {
    batch.records.push_back(random.usual_record(seq, base::Instant{7'200'000'000'000}));
    batch.records.back().output.content_rest.assign(static_cast<std::size_t>(state.range(0)), 'x');
  }
  for (auto _ : state) {
    ++batch.number;
    const auto accepted = ledger->accept(0, batch);
    if (!accepted || accepted->fresh.size() != kBatchRows) {
      state.SkipWithError("the batch was not taken whole");
      break;
    }
    for (auto& record : batch.records) {
      record.seq += kBatchRows;
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatchRows));
  std::filesystem::remove_all(folder);
}
BENCHMARK(ledger_accepts_256)->ArgName("text_bytes")->Arg(0)->Arg(1000)->Iterations(1000);

}  // namespace
}  // namespace tutti::bench
