// HeldCommands holds what std::map would, whatever is added and erased in whatever order.

#include "coordinator/conduct/held_commands.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "common/base/random.h"

namespace tutti::conduct {
namespace {

base::IssueCommand command(base::Seq seq) {
  base::IssueCommand out;
  out.seq = seq;
  out.sample = static_cast<base::SampleIndex>(seq * 3);
  return out;
}

TEST(HeldCommands, HoldWhatAMapWouldHold) {
  base::Mt19937 random(4);
  HeldCommands held;
  std::map<base::Seq, std::uint32_t> model;
  base::Seq next = 5'000;  // a phase may begin anywhere
  for (int step = 0; step < 60'000; ++step) {
    const bool back = random.below(8) == 0;  // one that came back, below or within what is there
    const base::Seq seq = back ? random.below(next) : next++;
    if (model.count(seq) == 0) {
      const auto seat = static_cast<std::uint32_t>(random.below(5));
      held.add(command(seq), seat);
      model.emplace(seq, seat);
    }
    while (model.size() > 3'000 || (random.below(2) == 0 && !model.empty())) {
      auto at = model.lower_bound(random.below(next));
      at = at == model.end() ? model.begin() : at;
      ASSERT_NE(held.find(at->first), nullptr);
      ASSERT_EQ(held.find(at->first)->seat, at->second);
      ASSERT_EQ(held.find(at->first)->command, command(at->first));
      held.erase(at->first);
      ASSERT_EQ(held.find(at->first), nullptr);
      model.erase(at);
    }
    ASSERT_EQ(held.size(), model.size());
  }
  held.erase_if([](const HeldCommands::Held& each) { return each.seat == 2; });
  std::erase_if(model, [](const auto& each) { return each.second == 2; });
  std::vector<base::Seq> seen;
  held.each([&](const HeldCommands::Held& each) { seen.push_back(each.command.seq); });
  std::vector<base::Seq> wanted;
  for (const auto& [seq, seat] : model) {
    wanted.push_back(seq);
  }
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(held.size(), model.size());
}

TEST(HeldCommands, AreEmptyAfterAllCameBackAndBeginAnewAnywhere) {
  HeldCommands held;
  for (base::Seq seq = 0; seq < 5'000; ++seq) {
    held.add(command(seq), 0);
  }
  for (base::Seq seq = 0; seq < 5'000; ++seq) {
    held.erase(seq);
  }
  EXPECT_EQ(held.size(), 0U);
  EXPECT_EQ(held.find(4'999), nullptr);
  held.add(command(1'000'000), 1);
  held.add(command(7), 2);
  EXPECT_EQ(held.find(7)->seat, 2U);
  EXPECT_EQ(held.find(1'000'000)->seat, 1U);
  EXPECT_EQ(held.find(500'000), nullptr);
}

}  // namespace
}  // namespace tutti::conduct
