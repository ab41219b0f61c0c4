#pragma once

// FrontendPicker: which frontend the next query goes to. Pure bookkeeping of one worker's share,
// owned by its thread.
//   least in flight  fewest of this worker's queries; ties go round
//   round robin      seq mod F;  pinned: worker mod F
//   weighted         timed and burst: a fixed round over seq, so that any number of agents gives
//                    the same counts; closed loop: this worker's slots are dealt to the frontends
//                    along the same round, and a free slot's query goes to the frontend it is of
//   affinity         by rendezvous hashing of the sample: the same one always, and a frontend more
//                    or less moves only its own samples
// A frontend whose last query failed keeps failing fast, perhaps, and would look idle: until one of
// its queries succeeds, least in flight and weighted closed loop give it no more than its turn, one
// query in F (in the round: its weight's share). It is never left out.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/target/frontend.h"
#include "common/base/vocabulary.h"
#include "common/wire/messages.h"

namespace tutti::target {

// One round of a smooth weighted choice: sum of the weights in lowest terms entries, frontend i
// exactly as often as its weight, and after any k entries, round after round, less than one away
// from k × weight / sum. Weights are not all 0. (Every entry goes to the earliest deadline
// (c + 1) × sum / weight among those that are not ahead of their share.)
std::vector<std::uint16_t> weighted_round(std::span<const std::uint32_t> weights);
// How often each of `frontends` stands in entries [first, first + count) of the endless rounds.
std::vector<std::uint32_t> dealt(std::span<const std::uint16_t> round, std::size_t frontends,
                                 std::uint64_t first, std::uint64_t count);

struct PickRules {
  base::Balance balance = base::Balance::kLeastInFlight;
  std::vector<std::uint32_t> weights;  // weighted: one per frontend
  std::vector<std::uint64_t> keys;     // affinity: one per frontend
};
PickRules pick_rules(const wire::TargetSpec& target, const std::vector<Frontend>& frontends);

class FrontendPicker {
 public:
  // `worker` is the run-wide worker number: the pinned frontend, and where turns begin.
  FrontendPicker(PickRules rules, std::size_t frontends, std::uint32_t worker);

  // A phase begins; `slots` of this worker, which stand from `first_slot` on in the row of all
  // workers' slots. Where the rows of two workers overlap or leave a gap, weights are missed by it.
  void arm(base::Pacing pacing, std::uint64_t first_slot, std::uint32_t slots);

  std::uint16_t pick(base::Seq seq, base::SampleIndex sample);
  void started(std::uint16_t frontend) { ++in_flight_[frontend]; }
  void ended(std::uint16_t frontend) { --in_flight_[frontend]; }
  // Of an ended query that was not cancelled.
  void judged(std::uint16_t frontend, bool ok) {
    failing_count_ += ok ? 0U : 1U;
    failing_count_ -= failing_[frontend] != 0 ? 1U : 0U;
    failing_[frontend] = ok ? 0 : 1;
  }
  std::uint32_t in_flight(std::uint16_t frontend) const { return in_flight_[frontend]; }

 private:
  bool may(std::size_t frontend, std::size_t turn) const {
    return failing_count_ == 0 || failing_[frontend] == 0 || frontend == turn;
  }
  std::uint16_t least_in_flight();
  std::uint16_t weighted_slot();
  std::uint16_t nearest(base::SampleIndex sample) const;

  PickRules rules_;
  std::vector<std::uint16_t> round_;   // weighted
  std::vector<std::uint32_t> quotas_;  // weighted closed loop: slots of this worker by frontend
  std::vector<std::uint32_t> in_flight_;
  std::vector<std::uint8_t> failing_;
  std::size_t failing_count_ = 0;
  std::size_t next_ = 0;  // least in flight: where ties begin
  std::uint64_t turn_ = 0;
  std::uint32_t worker_;
  bool by_slots_ = false;
};

}  // namespace tutti::target
