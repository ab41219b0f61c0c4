#pragma once

// Engine: what a session sees of the workers. It deals issue commands to W workers that share
// nothing and brings their records back. Promise: every command that issue() took comes back
// exactly once, as a record, as an unstarted sequence number, or counted lost (record ring full).
// No call blocks but start() and stop(). Owned and called by ONE thread; wake_fd() tells it when
// poll() has something.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "agent/target/video_folder.h"
#include "common/base/result.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/data/body_set.h"
#include "common/wire/messages.h"

namespace tutti::drive {

struct EngineConfig {
  wire::TargetSpec target{};
  const data::BodySet* bodies = nullptr;  // outlives the engine
  target::VideoFolder videos{};
  std::uint32_t workers = 1;
  std::uint32_t slots = 1;                // the most in flight at once, all workers
  std::uint32_t first_global_worker = 0;  // for pinned frontends: this agent's first worker number
  std::uint32_t agent_number = 0;         // for weighted ones: agents before have as many slots
  std::size_t queue_max = 65'536;         // commands held that are not yet on the wire, all workers
  std::size_t record_ring = 16'384;       // records per worker between two polls
};

struct EngineRecords {
  std::vector<wire::Record> records;
};
// Answer to recall(): never started, ascending, and no longer the engine's.
struct EngineRecalled {
  std::uint32_t phase = 0;
  std::uint32_t number = 0;
  std::vector<base::Seq> unstarted;
};
// Answer to abort(): what was queued, per phase. What was in flight comes as kCancelled records.
struct EngineAborted {
  struct Part {
    std::uint32_t phase = 0;
    std::vector<base::Seq> unstarted;
  };
  std::vector<Part> parts;
};
// Answer to warm(): one entry per frontend; reachable only if every worker could connect.
struct EngineWarmed {
  std::vector<wire::Reach> frontends;
  std::uint32_t connections_open = 0;
};
using EngineEvent = std::variant<EngineRecords, EngineRecalled, EngineAborted, EngineWarmed>;

class Engine {
 public:
  // kSetup errors name every problem of the config at once. Threads run when this returns.
  static base::Result<std::unique_ptr<Engine>> start(EngineConfig config, const base::Clock& clock);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // as stop()

  // Probes every frontend, then opens target.connections_warm connections at a bounded rate.
  void warm();

  // From now on commands of `phase` are paced so; `slots` ≤ config.slots. Commands of another phase
  // that are still queued stay queued until they are recalled.
  void arm(std::uint32_t phase, base::Pacing pacing, std::uint32_t slots, base::Instant start_at);

  // Takes the first n commands and returns n; less than all when the queue is full. Commands may
  // come before their phase is armed. A closed loop starts lower sequence numbers first.
  std::size_t issue(std::uint32_t phase, std::span<const base::IssueCommand> commands);

  // The same of conversations: `trajectories` says how the commands fall into them; the phase is
  // armed. Takes whole ones only; still returns a number of commands.
  std::size_t play(std::uint32_t phase, std::span<const base::IssueCommand> commands,
                   std::span<const wire::Trajectory> trajectories);

  // Of conversations that have begun, the turns that were not sent are among the unstarted.
  void recall(std::uint32_t phase, std::uint32_t number);
  void abort(const std::string& reason);

  int wake_fd() const;
  // Appends what happened since the last call.
  void poll(std::vector<EngineEvent>& out);

  // Commands of `phase` that were taken and have not come back: 0 means drained, by count of what
  // poll() returned, so every record is already out.
  std::uint64_t outstanding(std::uint32_t phase) const;
  // How many more commands of `phase` issue() would take now.
  std::size_t room(std::uint32_t phase) const;
  // Workers that run: fewer than asked when there are fewer slots or connections.
  std::uint32_t workers() const;
  // Records that found their ring full, ever. > 0 makes a run invalid.
  std::uint64_t records_lost() const;

  // Gauges of the armed phase; live counts since the previous call. Of its health only the records
  // lost.
  wire::Progress progress();
  // Health of the workers and the process since arm() or the previous call. `now` is the clock's.
  wire::Health health(base::Instant now);

  // Ends the threads; exchanges in flight end as kCancelled. poll() then gives the last records.
  void stop();

 private:
  struct Inside;
  explicit Engine(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace tutti::drive
