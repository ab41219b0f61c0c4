// The worker's thread allocates nothing once it is warm: not for a request, not for a chunk, not
// for a record.

#include <pthread.h>

#include "agent/target/gap_tally.h"
#include "tests/support/thread_allocations.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedServer;

constexpr std::size_t kRound = 50;
// Long enough that all slots are in use at once: a slot that was never used is not warm.
const support::Step kBusy = support::pause_for(2ms);

// Allocations of the worker during four rounds, after three in which the session let every record
// of a larger round wait: as many buffers as can be under way at once were made.
std::uint64_t allocations_of(EngineRig& rig) {
  base::Seq seq = 0;
  const auto issue = [&](std::size_t count) {
    rig.issue(count, seq);
    seq += count;
  };
  rig.arm(base::Pacing::kClosedLoop, rig.config.slots);
  for (int warm = 0; warm < 3; ++warm) {
    issue(kRound + 10);
    EXPECT_TRUE(EngineRig::wait([&] { return rig.engine().progress().done == seq; }));
    EXPECT_TRUE(rig.pump_records(seq));
  }
  support::count_allocations("tutti-io-");
  for (int round = 0; round < 4; ++round) {
    issue(kRound);
    EXPECT_TRUE(rig.pump_records(seq));
  }
  const std::uint64_t found = support::counted_allocations();
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
  return found;
}

TEST(EngineAllocation, TheCountSeesTheWorker) {
  ScriptedServer server(streams({"a"}));
  support::count_allocations("tutti-io-");
  EngineRig rig({server.url()});
  rig.one();  // the first query makes its buffers
  EXPECT_GT(support::counted_allocations(), 0U);
}

TEST(EngineAllocation, StreamsCostNoneOnceWarm) {
  std::vector<std::string> words(20, "a word of an answer ");
  words.front() = "the first word, longer than a short string ";
  ScriptedServer server(streams(words, 200us));
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.config.target.stamp_every_chunk = true;
  EXPECT_EQ(allocations_of(rig), 0U);
}

// The whole stream in one piece, so that its gaps are nothing each time: what a gap of a new length
// may take once is the next test's matter.
TEST(EngineAllocation, CountingGapsCostsNoneOnceWarm) {
  constexpr int kWords = 20;
  std::string stream = support::stream_head();
  for (int i = 0; i < kWords; ++i) {
    stream += support::http_chunk(support::content_event("a word of an answer, a long one "));
  }
  stream += support::http_chunk(support::finish_events()) + support::last_chunk();
  ScriptedServer server([&stream](const support::ScriptedRequest&) {
    return support::Script{kBusy, support::send_bytes(stream)};
  });
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  EXPECT_EQ(allocations_of(rig), 0U);
  for (const auto& record : rig.records) {
    std::uint64_t gaps = 0;
    for (const auto& [cell, count] : record.gaps) {
      gaps += count;
    }
    EXPECT_EQ(gaps, kWords - 1U);
    EXPECT_TRUE(record.chunk_at.empty());
  }
}

TEST(EngineAllocation, GapsOfAnyLengthCostNoneOnceAReplyHadAsMany) {
  ::pthread_setname_np(::pthread_self(), "gaps");
  target::GapTally tally;
  std::vector<wire::CountedCell> out;
  std::uint64_t found = 0;
  for (int reply = 0; reply < 3; ++reply) {
    support::count_allocations("gaps");
    tally.clear();
    for (std::int64_t gap = 1; gap < stats::LiveHistogram::kValueMax; gap += gap / 50 + 1 + reply) {
      tally.add(base::Duration{gap});
    }
    tally.write(out);
    found = support::counted_allocations();
    EXPECT_EQ(found > 0, reply == 0) << reply << ": " << found;
  }
}

TEST(EngineAllocation, JsonRepliesCostNoneOnceWarm) {
  ScriptedServer server([](const support::ScriptedRequest&) {
    return support::Script{
        kBusy, support::send_bytes(support::json_reply(support::chat_json(std::string(300, 'y'))))};
  });
  EngineRig rig({server.url()}, false);
  rig.config.slots = 4;
  EXPECT_EQ(allocations_of(rig), 0U);
}

TEST(EngineAllocation, FreshConnectionsCostNoneOnceAsManyStood) {
  ScriptedServer server([](const support::ScriptedRequest&) {
    return support::Script{
        kBusy,
        support::send_bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
                            "application/json\r\nContent-Length: " +
                            std::to_string(support::chat_json("hello").size()) + "\r\n\r\n" +
                            support::chat_json("hello")),
        support::close_now()};
  });
  EngineRig rig({server.url()}, false);
  rig.config.slots = 4;
  EXPECT_EQ(allocations_of(rig), 0U);
}

// Of our own: OpenSSL allocates with malloc, which is not counted here.
TEST(EngineAllocation, StreamsOverTlsCostNoneOnceWarm) {
  std::vector<std::string> words(20, "a word of an answer ");
  words.front() = "the first word, longer than a short string ";
  ScriptedServer server(streams(words, 200us), true);
  EngineRig rig({server.url()});
  rig.config.target.verify_tls = false;
  rig.config.slots = 4;
  rig.config.target.stamp_every_chunk = true;
  EXPECT_EQ(allocations_of(rig), 0U);
}

TEST(EngineAllocation, FreshTlsConnectionsCostNoneOnceAsManyStood) {
  ScriptedServer server(
      [](const support::ScriptedRequest&) {
        return support::Script{
            kBusy,
            support::send_bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
                                std::to_string(support::chat_json("hello").size()) + "\r\n\r\n" +
                                support::chat_json("hello")),
            support::goodbye()};
      },
      true);
  EngineRig rig({server.url()}, false);
  rig.config.target.verify_tls = false;
  rig.config.slots = 4;
  EXPECT_EQ(allocations_of(rig), 0U);
}

}  // namespace
}  // namespace tutti::drive
