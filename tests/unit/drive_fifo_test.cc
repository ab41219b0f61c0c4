#include <gtest/gtest.h>

#include <deque>

#include "agent/drive/fifo.h"
#include "common/base/random.h"

namespace tutti::drive {
namespace {

TEST(Fifo, BehavesAsADequeThroughGrowthAndWrapping) {
  Fifo<int> fifo;
  std::deque<int> model;
  base::Mt19937 dice(5);
  for (int i = 0; i < 20'000; ++i) {
    const bool add = model.empty() || dice.below(100) < (i / 4000 % 2 == 0 ? 60U : 40U);
    if (add) {
      fifo.push(i);
      model.push_back(i);
    } else {
      ASSERT_EQ(fifo.front(), model.front());
      ASSERT_EQ(fifo.pop(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(fifo.size(), model.size());
    ASSERT_EQ(fifo.empty(), model.empty());
  }
  fifo.clear();
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace tutti::drive
