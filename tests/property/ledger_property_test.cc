#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "coordinator/ledger/ledger.h"
#include "tests/support/report_run.h"

namespace tutti::ledger {
namespace {

using report_run::ok_record;
using report_run::TempFolder;

struct Sent {
  std::uint32_t agent = 0;
  wire::RecordBatch batch;
};

// `agents` agents deal the seqs 0 … n−1 among them, in batches of 1 to 5.
std::vector<Sent> deal(base::Mt19937& random, std::uint32_t agents, base::Seq n) {
  std::vector<wire::RecordBatch> open(agents);
  std::vector<std::uint64_t> numbers(agents, 0);
  std::vector<Sent> out;
  const auto close = [&](std::uint32_t agent) {
    if (!open[agent].records.empty()) {
      open[agent].number = ++numbers[agent];
      for (std::uint16_t phase = 0; phase < 2; ++phase) {
        open[agent].gaps.push_back({phase, {}});
        for (std::uint64_t left = random.below(4); left > 0; --left) {
          open[agent].gaps.back().cells.emplace_back(random.below(2000), 1 + random.below(9));
        }
      }
      out.push_back({agent, open[agent]});
      open[agent].records.clear();
      open[agent].gaps.clear();
      open[agent].tokens.clear();
    }
  };
  for (base::Seq seq = 0; seq < n; ++seq) {
    const auto agent = static_cast<std::uint32_t>(random.below(agents));
    open[agent].records.push_back(ok_record(0, static_cast<std::uint16_t>(seq % 2), seq / 2, 1, 2,
                                            3, static_cast<std::int32_t>(1 + seq % 50)));
    const wire::TokenCount count{static_cast<std::uint16_t>(seq % 2), seq / 2,
                                 static_cast<std::int32_t>(1 + seq % 50),
                                 static_cast<std::int32_t>(seq % 50), seq % 3 == 0};
    if (open[agent].records.size() > random.below(5)) {
      close(agent);  // its count comes in the next one, if there is one
    }
    open[agent].tokens.push_back(count);
  }
  for (std::uint32_t agent = 0; agent < agents; ++agent) {
    close(agent);
  }
  return out;
}

TEST(LedgerProperty, LossOfOrderAndRepetitionChangeNothingAndLossIsNamed) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    base::Mt19937 random(seed);
    const base::Seq n = 20 + random.below(200);
    std::vector<Sent> sent = deal(random, 1 + static_cast<std::uint32_t>(random.below(5)), n);
    // The last one is lost on the way, the others come in any order, half of them twice.
    const Sent lost = sent.back();
    sent.pop_back();
    const std::size_t once = sent.size();
    stats::LiveHistogram gaps[2];
    for (const Sent& it : sent) {
      for (const wire::PhaseGaps& part : it.batch.gaps) {
        ASSERT_TRUE(gaps[part.phase].add_cells(part.cells));
      }
    }
    std::uint64_t repeats = 0;
    for (std::size_t i = 0; i < once; ++i) {
      if (random.below(2) == 0) {
        sent.push_back(sent[i]);
        ++repeats;
      }
    }
    random.shuffle(sent);
    TempFolder folder;
    auto opened = Ledger::open(folder.path());
    ASSERT_TRUE(opened);
    Ledger ledger = std::move(*opened);
    std::uint64_t fresh = 0;
    std::set<std::pair<std::uint32_t, base::Seq>> counted;
    for (const Sent& it : sent) {
      for (const wire::TokenCount& count : it.batch.tokens) {
        counted.emplace(count.phase, count.seq);
      }
      const auto accepted = ledger.accept(it.agent, it.batch);
      ASSERT_TRUE(accepted);
      fresh += accepted->fresh.size();
      EXPECT_EQ(accepted->doubled, 0U);
    }
    EXPECT_EQ(fresh, n - lost.batch.records.size()) << seed;
    EXPECT_EQ(ledger.size(), fresh);
    EXPECT_EQ(ledger.repeated_batches(), repeats);
    EXPECT_EQ(ledger.token_counts(), counted.size());
    for (base::Seq seq = 0; seq < n; ++seq) {
      const auto phase = static_cast<std::uint32_t>(seq % 2);
      const auto count = ledger.tokens(phase, seq / 2);
      ASSERT_EQ(count.has_value(), counted.count({phase, seq / 2}) > 0) << seq;
      if (count) {
        EXPECT_EQ(count->output, static_cast<std::int32_t>(1 + seq % 50));
        EXPECT_EQ(count->after_first, static_cast<std::int32_t>(seq % 50));
        EXPECT_EQ(count->without_template, seq % 3 == 0);
      }
    }
    std::vector<base::Seq> expected[2];
    for (const wire::Record& record : lost.batch.records) {
      expected[record.phase].push_back(record.seq);
    }
    const std::uint64_t issued[2] = {(n + 1) / 2, n / 2};
    for (std::uint32_t phase = 0; phase < 2; ++phase) {
      std::sort(expected[phase].begin(), expected[phase].end());
      EXPECT_EQ(ledger.missing(phase, issued[phase]), expected[phase]) << seed;
      EXPECT_EQ(ledger.never_issued(phase, issued[phase]), 0U);
      ASSERT_NE(ledger.gaps(phase), nullptr);
      EXPECT_EQ(*ledger.gaps(phase), gaps[phase]) << "each batch's once, the lost one's never";
    }
    Texts texts;
    for (base::Seq seq = 0; seq < n; ++seq) {
      const Fact* fact = ledger.find(static_cast<std::uint32_t>(seq % 2), seq / 2);
      if (fact == nullptr) {
        continue;
      }
      ASSERT_TRUE(ledger.texts(*fact, texts));
      EXPECT_EQ(report_run::count_words(texts.output.content_first + texts.output.content_rest),
                static_cast<std::int64_t>(1 + seq % 50));
    }
  }
}

}  // namespace
}  // namespace tutti::ledger
