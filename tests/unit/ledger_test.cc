#include "coordinator/ledger/ledger.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "common/base/random.h"
#include "tests/support/report_run.h"

namespace tutti::ledger {
namespace {

using report_run::ok_record;
using report_run::TempFolder;

Ledger open(const TempFolder& folder) {
  auto opened = Ledger::open(folder.path());
  EXPECT_TRUE(opened.has_value());
  return std::move(*opened);
}

wire::RecordBatch batch(std::uint64_t number, std::vector<wire::Record> records) {
  wire::RecordBatch out;
  out.number = number;
  out.records = std::move(records);
  return out;
}

TEST(Ledger, ARepeatedBatchChangesNothingAndIsNoDefect) {
  TempFolder folder;
  Ledger ledger = open(folder);
  const auto first = batch(1, {ok_record(0, 1, 0, 1, 2, 3, 4), ok_record(0, 1, 1, 1, 2, 3, 4)});
  const auto one = ledger.accept(0, first);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->fresh.size(), 2U);
  EXPECT_FALSE(one->repeated);
  const auto two = ledger.accept(0, first);
  ASSERT_TRUE(two);
  EXPECT_TRUE(two->repeated);
  EXPECT_TRUE(two->fresh.empty());
  EXPECT_EQ(two->doubled, 0U);
  EXPECT_EQ(ledger.size(), 2U);
  EXPECT_EQ(ledger.doubled_count(1), 0U);
  EXPECT_EQ(ledger.repeated_batches(), 1U);
}

TEST(Ledger, BatchesOfEqualNumberOfTwoAgentsAreDifferent) {
  TempFolder folder;
  Ledger ledger = open(folder);
  ASSERT_TRUE(ledger.accept(0, batch(1, {ok_record(0, 0, 0, 1, 2, 3, 4)})));
  const auto other = ledger.accept(1, batch(1, {ok_record(1, 0, 1, 1, 2, 3, 4)}));
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->repeated);
  EXPECT_EQ(ledger.size(), 2U);
}

TEST(Ledger, ADoubledSeqIsCountedAndTheFirstRecordStands) {
  TempFolder folder;
  Ledger ledger = open(folder);
  ASSERT_TRUE(ledger.accept(3, batch(1, {ok_record(0, 1, 5, 1, 2, 3, 4)})));
  const auto again =
      ledger.accept(4, batch(1, {ok_record(0, 1, 5, 1, 2, 3, 9), ok_record(0, 1, 6, 1, 2, 3, 4)}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->doubled, 1U);
  ASSERT_EQ(again->fresh.size(), 1U);
  EXPECT_EQ(again->fresh[0].seq, 6U);
  EXPECT_EQ(ledger.doubled_count(1), 1U);
  EXPECT_EQ(ledger.doubled_count(0), 0U);
  ASSERT_EQ(ledger.doubled_examples().size(), 1U);
  EXPECT_EQ(ledger.doubled_examples()[0].seq, 5U);
  EXPECT_EQ(ledger.doubled_examples()[0].first_agent, 3U);
  EXPECT_EQ(ledger.doubled_examples()[0].second_agent, 4U);
  EXPECT_EQ(ledger.find(1, 5)->completion_tokens, 4);
}

TEST(Ledger, TheSameSeqInTwoPhasesIsTwoQueries) {
  TempFolder folder;
  Ledger ledger = open(folder);
  const auto both =
      ledger.accept(0, batch(1, {ok_record(0, 0, 5, 1, 2, 3, 4), ok_record(0, 1, 5, 1, 2, 3, 4)}));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->doubled, 0U);
  EXPECT_EQ(ledger.stored(0), 1U);
  EXPECT_EQ(ledger.stored(1), 1U);
}

TEST(Ledger, MissingSeqsAreNamedInOrderAndStrangersCounted) {
  TempFolder folder;
  Ledger ledger = open(folder);
  EXPECT_EQ(ledger.missing(0, 3), (std::vector<base::Seq>{0, 1, 2}));
  EXPECT_EQ(ledger.missing_count(0, 3), 3U);
  ASSERT_TRUE(ledger.accept(
      0, batch(1, {ok_record(0, 0, 1, 1, 2, 3, 4), ok_record(0, 0, 70000, 1, 2, 3, 4)})));
  EXPECT_EQ(ledger.missing(0, 4), (std::vector<base::Seq>{0, 2, 3}));
  EXPECT_EQ(ledger.missing(0, 4, 2), (std::vector<base::Seq>{0, 2}));
  EXPECT_EQ(ledger.missing_count(0, 4), 3U);
  EXPECT_EQ(ledger.never_issued(0, 4), 1U);
  EXPECT_EQ(ledger.never_issued(0, 70001), 0U);
  EXPECT_EQ(ledger.missing_count(0, 70001), 69999U);
}

TEST(Ledger, TextsAndChunkStampsReadBackFromBufferAndFile) {
  TempFolder folder;
  Ledger ledger = open(folder);
  wire::Record rich = ok_record(0, 0, 0, 1, 2, 3, 4);
  rich.error_message = "why";
  rich.finish_text = "odd";
  rich.output.content_first = std::string("nul\0byte", 8);
  rich.output.content_rest = std::string(700'000, 'x');
  rich.output.reasoning_first = "\xF0\x9F\x98\x80";
  rich.output.reasoning_rest = "r";
  rich.output.tool_calls = "[]";
  rich.output.has_reasoning = true;
  rich.chunk_at = {base::Instant{500}, base::Instant{400}, base::Instant{9'000'000'000'000}};
  wire::Record second = rich;
  second.seq = 1;
  second.output.content_rest = std::string(2'500'000, 'y');  // larger than the write buffer
  wire::Record bare;
  bare.seq = 2;
  ASSERT_TRUE(ledger.accept(0, batch(1, {rich, second, bare})));
  Texts texts;
  ASSERT_TRUE(ledger.texts(*ledger.find(0, 0), texts));
  EXPECT_EQ(texts.error_message, "why");
  EXPECT_EQ(texts.finish_text, "odd");
  EXPECT_EQ(texts.output.content_first, rich.output.content_first);
  EXPECT_EQ(texts.output.content_rest, rich.output.content_rest);
  EXPECT_EQ(texts.output.reasoning_first, rich.output.reasoning_first);
  EXPECT_EQ(texts.output.reasoning_rest, "r");
  EXPECT_EQ(texts.output.tool_calls, "[]");
  EXPECT_TRUE(texts.output.has_content && texts.output.has_reasoning && texts.output.has_rest);
  EXPECT_EQ(texts.chunk_at, rich.chunk_at);
  ASSERT_TRUE(ledger.texts(*ledger.find(0, 1), texts));
  EXPECT_EQ(texts.output.content_rest, second.output.content_rest);
  ASSERT_TRUE(ledger.texts(*ledger.find(0, 2), texts));
  EXPECT_TRUE(texts.output.content_first.empty() && texts.chunk_at.empty());
  EXPECT_FALSE(texts.output.has_content);
  EXPECT_EQ(ledger.find(0, 2)->text_bytes, 0U);
}

TEST(Ledger, GapsOfABatchCountOnceAndForeignCellsRefuseIt) {
  TempFolder folder;
  Ledger ledger = open(folder);
  EXPECT_EQ(ledger.gaps(1), nullptr);
  wire::RecordBatch some = batch(1, {ok_record(0, 1, 0, 1, 2, 3, 4)});
  some.gaps = {{1, {{70, 2}, {900, 1}}}};
  ASSERT_TRUE(ledger.accept(0, some));
  ASSERT_TRUE(ledger.accept(0, some));
  ASSERT_TRUE(ledger.accept(1, some)) << "another agent's batch of that number";
  ASSERT_NE(ledger.gaps(1), nullptr);
  EXPECT_EQ(ledger.gaps(1)->cells(), (std::vector<stats::LiveHistogram::Cell>{{70, 4}, {900, 2}}));
  EXPECT_EQ(ledger.gaps(0), nullptr);
  some.number = 2;
  some.records.front().seq = 1;
  some.gaps[0].cells.emplace_back(stats::LiveHistogram::kCells, 1);
  const auto refused = ledger.accept(0, some);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("gaps of phase 1, cell 2368"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(ledger.find(1, 1), nullptr);
  EXPECT_EQ(ledger.gaps(1)->count(), 6U);
}

TEST(Ledger, TheTextFileHasNoName) {
  TempFolder folder;
  Ledger ledger = open(folder);
  ASSERT_TRUE(ledger.accept(0, batch(1, {ok_record(0, 0, 0, 1, 2, 3, 4)})));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Ledger, ABatchWithARecordOutOfRangeIsRefusedWhole) {
  TempFolder folder;
  Ledger ledger = open(folder);
  wire::Record far = ok_record(0, 0, 1, 1, 2, 3, 4);
  far.seq = kSeqMax + 1;
  const auto refused = ledger.accept(7, batch(1, {ok_record(0, 0, 0, 1, 2, 3, 4), far}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("agent 7, record batch 1"), std::string::npos);
  EXPECT_EQ(ledger.size(), 0U);
  EXPECT_FALSE(ledger.accept(7, batch(0, {})));
  EXPECT_FALSE(ledger.accept(kAgentMax + 1, batch(1, {})));
  // The number was not used up: a good batch of that number is taken.
  EXPECT_TRUE(ledger.accept(7, batch(1, {ok_record(0, 0, 0, 1, 2, 3, 4)})));
  EXPECT_EQ(ledger.size(), 1U);
}

TEST(Ledger, AnEndlessGapInBatchNumbersIsRefused) {
  TempFolder folder;
  Ledger ledger = open(folder);
  for (std::uint64_t i = 0; i < kBatchGapMax; ++i) {
    ASSERT_TRUE(ledger.accept(0, batch(2 + i, {})));
  }
  EXPECT_FALSE(ledger.accept(0, batch(2 + kBatchGapMax, {})));
}

TEST(Ledger, AFullDiskIsAnErrorWithARemedyAndStaysOne) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  TempFolder folder;
  Ledger ledger = open(folder);
  struct rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::uint64_t number = 0;
  base::Result<Accepted> last = Accepted{};
  while (last && number < 100) {
    wire::Record record = ok_record(0, 0, number, 1, 2, 3, 4);
    record.output.content_rest = std::string(300'000, 'z');
    last = ledger.accept(0, batch(++number, {record}));
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(last);
  EXPECT_NE(last.error().message.find(folder.path()), std::string::npos);
  EXPECT_NE(last.error().message.find("free space"), std::string::npos);
  EXPECT_FALSE(ledger.accept(0, batch(number + 1, {})));
}

TEST(Ledger, AFolderThatIsNotThereIsASetupError) {
  const auto opened = Ledger::open("/nonexistent/run");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, base::ExitCode::kSetup);
}

TEST(Ledger, AgentStampsBecomeCoordinatorStampsAndAbsentOnesStayAbsent) {
  TempFolder folder;
  Ledger ledger = open(folder);
  ledger.set_clock(2, {base::Duration{-100}, base::Duration{3}});
  ASSERT_TRUE(ledger.accept(2, batch(1, {ok_record(0, 0, 0, 1, 2, 3, 4)})));
  const Fact& fact = ledger.fact(0);
  EXPECT_EQ(ledger.to_coordinator(fact, base::Instant{1000}).ns, 900);
  EXPECT_FALSE(ledger.to_coordinator(fact, base::Instant{}).is_set());
  EXPECT_EQ(ledger.clock(2).error.ns, 3);
  EXPECT_EQ(ledger.clock(9).offset.ns, 0);
}

TEST(Ledger, ARecordMovesAsAWholeByTheOffsetAtItsBegin) {
  TempFolder folder;
  Ledger ledger = open(folder);
  ClockMap map{base::Duration{150}, base::Duration{3}};
  map.knots = {{base::Instant{1000}, base::Duration{100}, base::Duration{1}},
               {base::Instant{2000}, base::Duration{200}, base::Duration{1}}};
  ledger.set_clock(0, map);
  Fact fact;
  fact.issued_at = base::Instant{1500};
  fact.done_at = base::Instant{5000};
  EXPECT_EQ(ledger.to_coordinator(fact, fact.issued_at).ns, 1650);
  EXPECT_EQ(ledger.to_coordinator(fact, fact.done_at).ns, 5150);
  fact.issued_at = {};  // never taken up: its due time is the next best, then its end
  EXPECT_EQ(ledger.to_coordinator(fact, fact.done_at).ns, 5200);
  fact.due_at = base::Instant{500};
  EXPECT_EQ(ledger.to_coordinator(fact, fact.done_at).ns, 5100);
  EXPECT_EQ(map.shift_at(base::Instant{1250}).ns, 125);
}

TEST(Ledger, CountsOfTokensAreKeptOnceByQueryAndMayComeBeforeTheRecord) {
  TempFolder folder;
  Ledger ledger = open(folder);
  wire::RecordBatch counts = batch(2, {});
  counts.tokens = {{1, 7, 40, 39, false}, {1, 70'000, 0, -1, true}};
  ASSERT_TRUE(ledger.accept(0, counts));
  EXPECT_EQ(ledger.size(), 0U);
  ASSERT_TRUE(ledger.accept(0, batch(1, {ok_record(0, 1, 7, 1, 2, 3, 4)})));
  ASSERT_TRUE(ledger.accept(0, counts)) << "again";
  EXPECT_EQ(ledger.token_counts(), 2U);
  EXPECT_EQ(ledger.tokens(1, 7), (wire::TokenCount{1, 7, 40, 39, false}));
  EXPECT_EQ(ledger.tokens(1, 70'000), (wire::TokenCount{1, 70'000, 0, -1, true}));
  EXPECT_FALSE(ledger.tokens(1, 8).has_value());
  EXPECT_FALSE(ledger.tokens(0, 7).has_value());
  EXPECT_FALSE(ledger.tokens(9, 7).has_value());
  EXPECT_FALSE(ledger.tokens(1, 900'000).has_value());
  wire::RecordBatch other = batch(3, {});
  other.tokens = {{1, 7, 99, 98, true}};
  ASSERT_TRUE(ledger.accept(0, other));
  EXPECT_EQ(ledger.tokens(1, 7)->output, 40) << "the first one stands, as of records";
  EXPECT_EQ(ledger.token_counts(), 2U);
}

TEST(Ledger, ABatchWithAnImpossibleCountIsRefusedWhole) {
  TempFolder folder;
  Ledger ledger = open(folder);
  const wire::TokenCount impossible[] = {{5000, 7, 1, 1, false},
                                         {1, std::uint64_t{1} << 40, 1, 1, false},
                                         {1, 7, -2, 1, false},
                                         {1, 7, 1, -2, false}};
  for (const wire::TokenCount& count : impossible) {
    wire::RecordBatch spoilt = batch(1, {ok_record(0, 1, 7, 1, 2, 3, 4)});
    spoilt.tokens = {count};
    EXPECT_FALSE(ledger.accept(0, spoilt));
    EXPECT_EQ(ledger.size(), 0U);
    EXPECT_EQ(ledger.token_counts(), 0U);
  }
}

TEST(UnpackTexts, DamagedBytesAreNoticed) {
  std::string packed;
  pack_texts(ok_record(0, 0, 0, 1, 2, 3, 4), packed);
  Texts texts;
  ASSERT_TRUE(unpack_texts(packed, texts));
  for (std::size_t cut = 1; cut < packed.size(); ++cut) {
    EXPECT_FALSE(unpack_texts(std::string_view(packed).substr(0, cut), texts)) << cut;
  }
  EXPECT_FALSE(unpack_texts(packed + "x", texts));
}

}  // namespace
}  // namespace tutti::ledger
