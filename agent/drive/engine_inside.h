#pragma once

// The inside of Engine, for engine*.cc only: the books it keeps on the session's thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/drive/dealer.h"
#include "agent/drive/engine.h"
#include "agent/drive/health_meter.h"
#include "agent/drive/worker.h"
#include "common/stats/live_histogram.h"

namespace tutti::drive {

struct Engine::Inside {
  Inside(EngineConfig given, const base::Clock& time, std::size_t count)
      : config(std::move(given)),
        clock(time),
        dealer(count, (config.queue_max + count - 1) / count),
        backlogs(count),
        ring_peaks(count, 0),
        meter(count, time.mono()) {}

  struct PhaseCount {
    std::uint64_t taken = 0;
    std::uint64_t returned = 0;  // records polled and unstarted ones reported
  };
  struct Held {
    std::uint32_t phase = 0;
    base::IssueCommand command{};
  };
  struct Gathering {
    std::uint64_t ticket = 0;  // on the orders and the notes that belong to it
    Note::Kind kind = Note::Kind::kRecalled;
    std::uint32_t phase = 0;
    std::uint32_t number = 0;
    std::size_t answers_due = 0;
    std::map<std::uint32_t, std::vector<base::Seq>> unstarted;
    EngineWarmed warmed{};
  };

  // Orders.
  void give(std::size_t worker, Order&& order);
  void flush_backlogs();
  void refresh();
  bool deal(std::uint32_t phase, const base::IssueCommand& command);
  void deal_held();
  void ring_touched();
  Gathering& expect(Note::Kind kind);
  // Moves held commands to `gathering`, of one phase or of all.
  void give_back_held(Gathering& gathering, const std::uint32_t* phase);
  void order_all(Order::Kind kind, std::uint64_t ticket, std::uint32_t phase,
                 const std::string& reason);
  std::unique_ptr<target::WarmPlan> warm_plan(std::size_t worker) const;
  // Results.
  void note_live(const wire::Record& record);
  void take_records(std::vector<EngineEvent>& out);
  void take_notes(std::vector<EngineEvent>& out);
  void absorb(Note& note, std::vector<EngineEvent>& out);
  void emit(Gathering& gathering, std::vector<EngineEvent>& out);
  std::vector<WorkerReading> read_workers();
  void stop();

  EngineConfig config;
  const base::Clock& clock;
  SessionBell bell;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<target::Frontend> frontends;
  Dealer dealer;
  std::vector<std::deque<Order>> backlogs;  // orders that found their ring full, in order
  std::vector<bool> touched = std::vector<bool>(backlogs.size(), false);
  std::deque<Held> held;  // commands of phases that are not armed yet
  std::map<std::uint32_t, PhaseCount> phases;
  std::deque<Gathering> gatherings;  // answers of workers not complete yet
  std::uint64_t last_ticket = 0;
  bool armed = false;
  bool stopped = false;
  std::uint32_t armed_phase = 0;

  stats::LiveHistogram ttft;
  stats::LiveHistogram tpot;
  std::vector<std::uint32_t> ring_peaks;  // percent; a ring only shrinks when it is polled here
  HealthMeter meter;
};

}  // namespace tutti::drive
