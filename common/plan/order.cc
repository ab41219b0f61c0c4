#include "common/plan/order.h"

#include <numeric>

#include "common/base/check.h"

namespace tutti::plan {

SampleOrder::SampleOrder(OrderKind kind, std::uint32_t rows, std::uint64_t seed,
                         base::SampleIndex single)
    : kind_(kind), rows_(rows), single_(single), random_(seed) {
  TUTTI_CHECK(rows > 0);
  TUTTI_CHECK(kind != OrderKind::kSingle || single < rows);
}

base::SampleIndex SampleOrder::next() {
  switch (kind_) {
    case OrderKind::kWithoutReplacement:
      if (list_.empty()) {
        list_.resize(rows_);
        std::iota(list_.begin(), list_.end(), base::SampleIndex{0});
        position_ = rows_;
      }
      if (position_ == rows_) {
        random_.shuffle(list_);
        position_ = 0;
      }
      return list_[position_++];
    case OrderKind::kWithReplacement:
      return static_cast<base::SampleIndex>(random_.below(rows_));
    case OrderKind::kSequential: {
      const base::SampleIndex row = position_;
      position_ = position_ + 1 == rows_ ? 0 : position_ + 1;
      return row;
    }
    case OrderKind::kSingle:
      return single_;
  }
  TUTTI_CHECK(false && "an order of no known kind");
}

}  // namespace tutti::plan
