#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "agent/drive/due_queue.h"
#include "common/base/random.h"

namespace tutti::drive {
namespace {

Queued command(base::Seq seq, std::int64_t due_ns) {
  Queued queued;
  queued.command.seq = seq;
  queued.command.due_offset = base::Duration{due_ns};
  return queued;
}

// Against an ordered map, with runs in order, equal due times and commands that come behind.
TEST(DueQueue, AlwaysGivesTheEarliestDueThenTheLowestNumber) {
  DueQueue queue;
  std::map<std::pair<std::int64_t, base::Seq>, int> model;
  base::Mt19937 dice(7);
  std::int64_t due = 0;
  for (base::Seq seq = 0; seq < 20'000; ++seq) {
    due += static_cast<std::int64_t>(dice.below(3));
    const bool behind = dice.below(10) == 0;
    const std::int64_t at = behind ? static_cast<std::int64_t>(dice.below(1000)) : due;
    const base::Seq number = behind ? 1'000'000 - seq : seq;
    queue.push(command(number, at));
    model[{at, number}] = 0;
    while (!model.empty() && dice.below(100) < (seq / 3000 % 2 == 0 ? 40U : 60U)) {
      const auto [at_first, seq_first] = model.begin()->first;
      ASSERT_EQ(queue.front().command.seq, seq_first);
      const Queued got = queue.pop();
      ASSERT_EQ(got.command.seq, seq_first);
      ASSERT_EQ(got.command.due_offset.ns, at_first);
      model.erase(model.begin());
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.empty(), model.empty());
  }
}

}  // namespace
}  // namespace tutti::drive
