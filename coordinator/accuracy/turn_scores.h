#pragma once

// TurnScores: agentic_inference_inline over the turns of a run's conversations, and its
// scores.json. The score is the mean over issued turns whose recorded answer tells something to
// compare; what failed or has no record is worth 0, what was never issued costs nothing. One owner.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/accuracy/turn_truth.h"

namespace tutti::accuracy {

struct TurnName {
  std::string conversation;  // without the mark of its pass
  std::uint64_t pass = 1;
  std::uint32_t turn = 0;  // of the recorded answer, from 1
};

class TurnScores {
 public:
  // Of each issued turn one of these, in the order of the file.
  void add(TurnName turn, const TurnTruth& truth, const TurnAnswer& answer);
  void add_missing(TurnName turn, const TurnTruth& truth);  // failed, or no record
  void add_excluded(TurnName turn);                         // nothing to compare with

  std::uint64_t issued() const { return turns_.size() + excluded_.size(); }
  std::uint64_t scored() const { return turns_.size(); }
  std::uint64_t missing() const;
  // 0 to 1, to four places; nothing when no turn is scored.
  std::optional<double> score() const;
  std::string json() const;

 private:
  struct Turn {
    TurnName name;
    TurnTruth truth;
    TurnAnswer answer;
    bool missing = false;
    double score = 0;
  };
  enum class Domain : std::uint8_t { kAll, kCoding, kWorkflow };
  struct Sum {
    double score = 0;
    std::uint64_t count = 0;
  };
  Sum sum_of(Domain domain) const;

  std::vector<Turn> turns_;
  std::vector<TurnName> excluded_;
};

}  // namespace tutti::accuracy
