#pragma once

// SampleOrder: which data set row each query of a phase takes. Seeded, endless (the count or the
// stop rule ends a phase, never the order), bit-identical to the reference client's orders;
// vectors: tests/conformance/sample_order_*.json. One owner, no locks. Memory: 4 B a row without
// replacement, taken at the first draw; nothing otherwise.

#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "common/base/vocabulary.h"

namespace tutti::plan {

enum class OrderKind : std::uint8_t {
  // A list of all rows is shuffled in place before the first draw and again, from its then order,
  // each
  // time it is used up. Performance and warm-up.
  kWithoutReplacement = 0,
  kWithReplacement = 1,  // every draw uniform over all rows
  kSequential = 2,       // 0 … n−1, again and again; draws no random number. Accuracy
  kSingle = 3,           // one row for ever; draws no random number. Audits
};

class SampleOrder {
 public:
  // `rows` in 1 … 2^32−1. `single` (< rows) is the row of kSingle and is ignored by the others.
  SampleOrder(OrderKind kind, std::uint32_t rows, std::uint64_t seed, base::SampleIndex single = 0);

  base::SampleIndex next();

 private:
  OrderKind kind_;
  std::uint32_t rows_;
  base::SampleIndex single_;
  base::Mt19937 random_;
  std::vector<base::SampleIndex> list_;  // empty until the first draw
  std::uint32_t position_ = 0;
};

}  // namespace tutti::plan
