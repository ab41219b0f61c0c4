#pragma once

// RecordBatcher: gathers finished records, and counts of their tokens, into numbered batches. Every
// batch goes to the spool at once; how many may be on their way to the coordinator unacknowledged
// is bounded, the rest waits here (there is never more of it than the commands this agent was
// leased). Pure; owned by the AgentMachine.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "agent/record/recorder.h"
#include "agent/session/agent_events.h"
#include "common/base/time.h"
#include "common/stats/live_histogram.h"
#include "common/wire/messages.h"

namespace tutti::session {

class RecordBatcher {
 public:
  static constexpr std::size_t kBatchMax = 256;  // records of one batch
  // Long texts make a batch shorter: a frame is bounded. A record alone always fits
  // (target::Reply).
  static constexpr std::size_t kBatchBytesMax = std::size_t{16} << 20;
  static constexpr base::Duration kWaitMax = record::kCompanyMax;  // since its query ended
  static constexpr std::size_t kCountsMax = 8192;                  // of one batch
  // Of a count: nobody waits for one, so it goes with the next records where there are some.
  static constexpr base::Duration kCountWaitMax = base::Duration::millis(250);
  static constexpr std::uint64_t kUnackedMax = 256;  // batches on their way

  void add(std::vector<wire::Record>&& records, base::Instant now);
  // Each of a record that was added before.
  void add_counts(std::vector<wire::TokenCount>&& counts, base::Instant now);
  // Cuts what is due, or all records, or all there is; appends SpoolAppend and Send.
  enum class Cut : std::uint8_t { kDue, kRecords, kAll };
  void flush(base::Instant now, Cut what, std::vector<Command>& out);
  // False, and nothing changed, when `number` was never sent.
  bool acknowledge(std::uint64_t number, std::vector<Command>& out);
  // No link any more: batches are spooled and not sent.
  void stop_sending();

  bool all_sent() const { return pending_.empty() && counts_.empty() && unsent_.empty(); }
  bool all_acknowledged() const { return all_sent() && acked_ == last_; }
  std::uint64_t last() const { return last_; }  // number of the newest batch
  std::uint64_t waiting() const { return last_ - acked_; }
  base::Instant due_at() const;  // kFarFuture when nothing waits

 private:
  void note(std::size_t from);
  std::size_t end_of_batch(std::size_t from) const;
  void gather_gaps(wire::RecordBatch& batch);
  bool counts_due(base::Instant now) const;
  void cut(std::size_t from, std::size_t to, std::vector<Command>& out);
  void send_allowed(std::vector<Command>& out);

  bool sending_ = true;
  std::vector<wire::Record> pending_;
  base::Instant oldest_at_{};      // when the first of their queries ended
  std::size_t pending_bytes_ = 0;  // of all of them, at most
  std::vector<wire::TokenCount> counts_;
  base::Instant oldest_count_at_{};
  // Scratch: one phase of the batch being cut. Made when the first gaps come.
  std::optional<stats::LiveHistogram> gaps_;
  std::deque<wire::RecordBatch> unsent_;
  std::uint64_t last_ = 0;
  std::uint64_t acked_ = 0;
};

}  // namespace tutti::session
