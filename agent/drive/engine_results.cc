// What comes back from the workers: records, answers, gauges.

#include <algorithm>
#include <utility>

#include "agent/drive/engine_inside.h"
#include "common/base/check.h"
#include "common/sys/limits.h"
#include "common/sys/process.h"

namespace tutti::drive {
namespace {

std::vector<base::Seq> sorted_seqs(std::vector<base::Seq> seqs) {
  std::sort(seqs.begin(), seqs.end());
  return seqs;
}

}  // namespace

void Engine::Inside::note_live(const wire::Record& record) {
  if (!record.first_token_at.is_set() || record.outcome != wire::Outcome::kOk) {
    return;
  }
  ttft.add((record.first_token_at - record.issued_at).ns);
  if (record.completion_tokens > 1) {  // of usage; events are no tokens
    tpot.add((record.done_at - record.first_token_at).ns / (record.completion_tokens - 1));
  }
}

void Engine::Inside::take_records(std::vector<EngineEvent>& out) {
  EngineRecords batch;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto& worker = workers[i];
    // No more than were there at the start: a fast worker must not hold the session here.
    std::size_t left = worker->recorder().size();
    ring_peaks[i] = std::max(ring_peaks[i], worker->recorder().fill_percent());
    batch.records.reserve(batch.records.size() + left);
    for (; left > 0; --left) {
      std::unique_ptr<wire::Record> record = worker->recorder().take();
      if (!record) {
        break;
      }
      ++phases[record->phase].returned;
      note_live(*record);
      // Copied, so that the worker gets its buffers back: its thread is the one that is measured.
      batch.records.push_back(*record);
      worker->recorder().give_back(std::move(record));
    }
  }
  if (!batch.records.empty()) {
    out.emplace_back(std::move(batch));
  }
}

void Engine::Inside::take_notes(std::vector<EngineEvent>& out) {
  Note note;
  for (auto& worker : workers) {
    while (worker->take_note(note)) {
      absorb(note, out);
      note = Note{};
    }
  }
}

void Engine::Inside::absorb(Note& note, std::vector<EngineEvent>& out) {
  const auto it = std::find_if(gatherings.begin(), gatherings.end(),
                               [&note](const Gathering& g) { return g.ticket == note.ticket; });
  TUTTI_CHECK(it != gatherings.end());
  for (const auto& [phase, seq] : note.unstarted) {
    it->unstarted[phase].push_back(seq);
  }
  auto& reached = it->warmed.frontends;
  reached.resize(std::max(reached.size(), note.warmed.frontends.size()));
  for (std::size_t f = 0; f < note.warmed.frontends.size(); ++f) {
    auto& mine = note.warmed.frontends[f];
    const bool first = it->answers_due == workers.size();
    reached[f].reachable = mine.reachable && (first || reached[f].reachable);
    reached[f].connect_us = std::max(reached[f].connect_us, mine.connect_us);
    if (reached[f].error.empty()) {
      reached[f].error = std::move(mine.error);
    }
  }
  it->warmed.connections_open += note.warmed.connections_open;
  if (--it->answers_due == 0) {
    emit(*it, out);
    gatherings.erase(it);
  }
}

void Engine::Inside::emit(Gathering& gathering, std::vector<EngineEvent>& out) {
  for (const auto& [phase, seqs] : gathering.unstarted) {
    phases[phase].returned += seqs.size();
  }
  switch (gathering.kind) {
    case Note::Kind::kRecalled:
      out.emplace_back(
          EngineRecalled{gathering.phase, gathering.number,
                         sorted_seqs(std::move(gathering.unstarted[gathering.phase]))});
      break;
    case Note::Kind::kAborted: {
      EngineAborted aborted;
      for (auto& [phase, seqs] : gathering.unstarted) {
        aborted.parts.push_back({phase, sorted_seqs(std::move(seqs))});
      }
      out.emplace_back(std::move(aborted));
      break;
    }
    case Note::Kind::kWarmed:
      out.emplace_back(std::move(gathering.warmed));
      break;
  }
}

std::vector<WorkerReading> Engine::Inside::read_workers() {
  std::vector<WorkerReading> out;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const WorkerGauges& gauges = workers[i]->gauges();
    const record::Recorder& recorder = workers[i]->recorder();
    WorkerReading reading;
    reading.issue_lag = &gauges.issue_lag;
    reading.read_lag = &gauges.live.read_lag;
    reading.turn = &gauges.turn;
    reading.cpu = workers[i]->cpu();
    reading.stalls = gauges.stalls.get();
    reading.connect_failures = gauges.live.connect_shortages.load(std::memory_order_relaxed);
    reading.reads_unstamped = gauges.live.reads_unstamped.load(std::memory_order_relaxed);
    reading.records_lost = recorder.lost();
    reading.connections = static_cast<std::uint32_t>(gauges.connections.get());
    reading.ring_fill_percent = std::max(ring_peaks[i], recorder.fill_percent());
    ring_peaks[i] = 0;
    out.push_back(reading);
  }
  return out;
}

wire::Health Engine::health(base::Instant now) {
  wire::Health health = inside_->meter.close(inside_->read_workers(), now);
  health.open_fds = sys::open_descriptors();
  health.fd_limit = sys::open_files_limit().soft;
  health.rss_bytes = sys::resident_bytes();
  return health;
}

wire::Progress Engine::progress() {
  inside_->refresh();
  wire::Progress progress;
  progress.phase = inside_->armed_phase;
  progress.frontends.resize(inside_->frontends.size());
  std::uint64_t queued = inside_->held.size();
  for (std::size_t i = 0; i < inside_->workers.size(); ++i) {
    const WorkerGauges& gauges = inside_->workers[i]->gauges();
    queued += inside_->dealer.queued(i);
    progress.in_flight += static_cast<std::uint32_t>(gauges.in_flight.get());
    if (gauges.phase.get() == progress.phase) {
      progress.started += gauges.started.get();
      progress.done += gauges.done.get();
      progress.failed += gauges.failed.get();
    }
    progress.output_tokens += gauges.live.output_tokens.load(std::memory_order_relaxed);
    const std::int64_t last = gauges.live.last_response_ns.load(std::memory_order_relaxed);
    progress.last_response_at = std::max(progress.last_response_at, base::Instant{last});
    for (std::size_t f = 0; f < gauges.frontends.size(); ++f) {
      const std::uint64_t done = gauges.frontends[f].done.get();
      const std::uint64_t started = gauges.frontends[f].started.get();
      progress.frontends[f].started += started;
      progress.frontends[f].done += done;
      progress.frontends[f].failed += gauges.frontends[f].failed.get();
      progress.frontends[f].in_flight +=
          static_cast<std::uint32_t>(started - std::min(done, started));
    }
  }
  progress.queued = static_cast<std::uint32_t>(queued);
  progress.ttft.cells = inside_->ttft.cells();
  progress.tpot.cells = inside_->tpot.cells();
  inside_->ttft.clear();
  inside_->tpot.clear();
  progress.health.records_lost = records_lost();
  return progress;
}

}  // namespace tutti::drive
