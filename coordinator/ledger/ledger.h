#pragma once

// Ledger: every record of a run, once. accept() is idempotent by (agent, batch number) and by
// (phase, seq), so a repeated or reordered batch changes nothing, and what is not here can be
// named. Facts live in memory: 128 bytes per record + 4 of index, so 10 million records are 1.3 GB;
// texts live in a nameless file in the run folder. Owned by the coordinator's loop thread; reading
// is const and may be done by another thread once nobody accepts any more.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/stats/live_histogram.h"
#include "common/wire/messages.h"
#include "common/wire/record.h"
#include "coordinator/ledger/clock_map.h"
#include "coordinator/ledger/text_store.h"
#include "coordinator/ledger/texts.h"

namespace tutti::ledger {

// What is kept of a record in memory. Instants are the agent's clock (see Ledger::to_coordinator).
struct Fact {
  base::Instant due_at{};
  base::Instant issued_at{};
  base::Instant sent_at{};
  base::Instant first_byte_at{};
  base::Instant first_token_at{};
  base::Instant last_token_at{};
  base::Instant done_at{};
  std::uint64_t text_at = 0;  // offset in the text file
  std::uint32_t text_bytes = 0;
  std::uint32_t seq = 0;
  std::uint32_t sample = 0;
  std::uint32_t dns_us = 0;
  std::uint32_t connect_us = 0;
  std::uint32_t tls_us = 0;
  std::uint32_t content_events = 0;
  std::uint32_t bytes_up = 0;
  std::uint32_t bytes_down = 0;
  std::int32_t prompt_tokens = -1;
  std::int32_t completion_tokens = -1;
  std::int32_t reasoning_tokens = -1;
  std::uint16_t malformed_events = 0;  // saturates
  std::uint16_t agent = 0;
  std::uint16_t phase = 0;
  std::uint16_t worker = 0;
  std::uint16_t frontend = 0;
  std::uint16_t http_status = 0;
  wire::Outcome outcome = wire::Outcome::kOk;
  wire::Failure failure = wire::Failure::kNone;
  wire::FinishReason finish_reason = wire::FinishReason::kNone;
  bool streamed : 1;
  bool connection_reused : 1;
  bool resent : 1;

  Fact() : streamed(false), connection_reused(false), resent(false) {}
  bool ok() const { return outcome == wire::Outcome::kOk; }
  // Where the record lies in time: when it was taken up, or the next best thing it has.
  base::Instant begun_at() const {
    const base::Instant at = issued_at.is_set() ? issued_at : due_at;
    return at.is_set() ? at : done_at;
  }
};
static_assert(sizeof(Fact) == 128);

inline constexpr std::uint64_t kSeqMax = UINT32_MAX - 1;  // also the most records of a run
inline constexpr std::uint32_t kAgentMax = UINT16_MAX;
inline constexpr std::size_t kBatchGapMax = 65536;  // batches of an agent that came out of order
inline constexpr std::size_t kDoubledExamples = 16;

// A record that was new to the ledger.
struct Stored {
  std::uint32_t phase = 0;
  base::Seq seq = 0;
  wire::Outcome outcome = wire::Outcome::kOk;
};

struct Accepted {
  bool repeated = false;  // this batch was here before: nothing was looked at
  std::vector<Stored> fresh;
  std::uint64_t doubled = 0;  // records whose (phase, seq) was here already: a defect
};

// Two records claim the same query. The first one stands.
struct Doubled {
  std::uint32_t phase = 0;
  base::Seq seq = 0;
  std::uint32_t first_agent = 0;
  std::uint32_t second_agent = 0;
};

class Ledger {
 public:
  // `folder` is the run folder; it must exist.
  static base::Result<Ledger> open(const std::string& folder);

  // `agent` numbers one incarnation of an agent: a restarted one counts its batches from 1 again
  // and needs a number of its own. Fails, storing nothing of the batch, on a number or index out of
  // range; fails for good when the text file cannot grow. A failed batch must not be acknowledged.
  base::Result<Accepted> accept(std::uint32_t agent, const wire::RecordBatch& batch);

  std::uint64_t size() const { return size_; }
  const Fact& fact(std::uint64_t i) const;  // i in arrival order, < size()
  const Fact* find(std::uint32_t phase, base::Seq seq) const;
  // Reads the long part back from disk into `out`, reusing its buffers.
  base::Status texts(const Fact& fact, Texts& out) const;

  // The gaps between content events of the phase's replies, from the batches that are here;
  // nullptr: none came. Only replies without chunk stamps are in it (stream_all_chunks off).
  const stats::LiveHistogram* gaps(std::uint32_t phase) const;

  // Tokens of the query's reply, as its agent counted them; nothing: no count came. It may be here
  // before the record is.
  std::optional<wire::TokenCount> tokens(std::uint32_t phase, base::Seq seq) const;
  std::uint64_t token_counts() const { return token_counts_; }

  std::uint64_t stored(std::uint32_t phase) const;
  // Of the seqs below an issued count, those that were never issued after all, and that nobody
  // misses: turns of conversations that a stop cut short. Ascending.
  void withhold(std::uint32_t phase, std::vector<base::Seq> seqs);
  bool is_withheld(std::uint32_t phase, base::Seq seq) const;
  std::uint64_t withheld_count(std::uint32_t phase) const;

  // How many of the issued seqs 0 … issued_count − 1 have no record, and the first `most` of them.
  std::uint64_t missing_count(std::uint32_t phase, std::uint64_t issued_count) const;
  std::vector<base::Seq> missing(std::uint32_t phase, std::uint64_t issued_count,
                                 std::size_t most = SIZE_MAX) const;
  // Records of seqs ≥ issued_count: nobody ordered them, a defect.
  std::uint64_t never_issued(std::uint32_t phase, std::uint64_t issued_count) const;

  std::uint64_t doubled_count(std::uint32_t phase) const;
  const std::vector<Doubled>& doubled_examples() const { return doubled_examples_; }
  std::uint64_t repeated_batches() const { return repeated_batches_; }
  std::uint64_t text_bytes() const { return store_.size_bytes(); }

  void set_clock(std::uint32_t agent, ClockMap map);
  const ClockMap& clock(std::uint32_t agent) const;  // zero map for an agent never set
  // All stamps of a record are shifted by the offset at its begin, so that their differences are
  // those the agent measured, to the nanosecond.
  base::Instant to_coordinator(const Fact& fact, base::Instant at) const {
    const bool known = at.is_set() && fact.agent < clocks_.size();
    return known ? at + clocks_[fact.agent].shift_at(fact.begun_at()) : at;
  }

 private:
  struct Count {
    static constexpr std::int32_t kNone = -2;
    std::int32_t output = kNone;
    std::int32_t after_first = -1;
    bool without_template = false;
  };
  // Position + 1 of each seq's fact, 0: none; in pages, so that a large seq costs one page.
  struct PhaseIndex {
    std::vector<std::vector<std::uint32_t>> pages;
    std::uint64_t stored = 0;
    std::uint64_t doubled = 0;
    std::vector<base::Seq> withheld;
    std::unique_ptr<stats::LiveHistogram> gaps;
    std::vector<std::vector<Count>> counts;  // in the same pages; empty: none came for any of it
  };
  struct BatchLog {
    std::uint64_t all_up_to = 0;
    std::set<std::uint64_t> beyond;
  };

  explicit Ledger(TextStore store) : store_(std::move(store)) {}
  base::Status check(std::uint32_t agent, const wire::RecordBatch& batch) const;
  bool seen(std::uint32_t agent, std::uint64_t number) const;
  void note_batch(std::uint32_t agent, std::uint64_t number);
  void add_gaps(const wire::RecordBatch& batch);
  void add_tokens(const wire::RecordBatch& batch);
  std::uint64_t stored_below(std::uint32_t phase, std::uint64_t end) const;
  std::uint32_t& slot(std::uint32_t phase, base::Seq seq);
  std::uint32_t position(std::uint32_t phase, base::Seq seq) const;
  void note_doubled(const wire::Record& record, std::uint32_t agent, std::uint32_t there);
  base::Status store(std::uint32_t agent, const wire::Record& record);

  TextStore store_;
  std::vector<std::unique_ptr<Fact[]>> blocks_;
  std::uint64_t size_ = 0;
  std::vector<PhaseIndex> phases_;
  std::map<std::uint32_t, BatchLog> batches_;
  std::vector<ClockMap> clocks_;
  std::vector<Doubled> doubled_examples_;
  std::uint64_t repeated_batches_ = 0;
  std::uint64_t token_counts_ = 0;
  std::optional<base::Error> broken_;
  std::string packed_;  // scratch
};

}  // namespace tutti::ledger
