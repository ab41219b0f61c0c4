// What a record costs on the wire: encoding and decoding a batch of 256 ordinary records, and the
// whole way through envelope and link. items_per_second is records per second of one core.

#include <benchmark/benchmark.h>

#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/link.h"
#include "tests/property/wire_random.h"

namespace tutti::wire {
namespace {

constexpr std::size_t kRows = 256;

RecordBatch ordinary_batch(bool texts) {
  RandomMessages random(1);
  RecordBatch batch;
  batch.number = 1;
  base::Instant issued{7'200'000'000'000};
  for (base::Seq seq = 0; seq < kRows; ++seq) {
    issued = issued + base::Duration::micros(static_cast<std::int64_t>(random.draw().below(900)));
    batch.records.push_back(random.usual_record(seq, issued));
    if (texts) {
      batch.records.back().output.content_first = "The";
      batch.records.back().output.content_rest.assign(1'000, 'x');
    }
  }
  return batch;
}

void encode_batch(benchmark::State& state) {
  const Message message = ordinary_batch(state.range(0) != 0);
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = encode(message).bytes.size();
    benchmark::DoNotOptimize(bytes);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
  state.counters["bytes_per_record"] = static_cast<double>(bytes) / kRows;
}
BENCHMARK(encode_batch)->ArgName("texts")->Arg(0)->Arg(1);

void decode_batch(benchmark::State& state) {
  const Encoded encoded = encode(ordinary_batch(state.range(0) != 0));
  for (auto _ : state) {
    auto message = decode(encoded.plane, encoded.bytes);
    benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(decode_batch)->ArgName("texts")->Arg(0)->Arg(1);

// Bytes of a message → link → envelope → envelope → link → message, acknowledged.
void batch_over_a_link(benchmark::State& state) {
  const Message message = ordinary_batch(false);
  base::Instant now{1'000};
  Link up(LinkConfig{}, {1, 1}, now);
  Link down(LinkConfig{}, {2, 2}, now);
  std::vector<Frame> frames;
  std::vector<Delivered> delivered;
  for (auto _ : state) {
    now = now + base::Duration::millis(5);
    Encoded encoded = encode(message);
    if (!up.send(encoded.plane, std::move(encoded.bytes), now)) {
      state.SkipWithError("window full");
      break;
    }
    frames.clear();
    delivered.clear();
    up.poll(now, frames);
    for (const Frame& frame : frames) {
      down.receive(decode_envelope(encode_envelope(frame)).value(), now, delivered);
    }
    for (const Delivered& each : delivered) {
      benchmark::DoNotOptimize(decode(each.plane, each.payload));
    }
    frames.clear();
    down.poll(now, frames);
    for (Frame& frame : frames) {
      up.receive(std::move(frame), now, delivered);
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(batch_over_a_link);

void decode_lease(benchmark::State& state) {
  Lease lease;
  lease.phase = 1;
  RandomMessages random(2);
  for (base::Seq seq = 0; seq < kRows; ++seq) {
    const auto sample = static_cast<base::SampleIndex>(random.draw().below(10'000));
    lease.commands.push_back({seq * 3, sample, base::Duration::micros(static_cast<int>(seq) * 120),
                              state.range(0) != 0,
                              state.range(0) != 0 ? random.draw().next_bits(64) : 0});
  }
  const Encoded encoded = encode(Message{lease});
  for (auto _ : state) {
    auto message = decode(encoded.plane, encoded.bytes);
    benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(decode_lease)->ArgName("salted")->Arg(0)->Arg(1);

}  // namespace
}  // namespace tutti::wire
