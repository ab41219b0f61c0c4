// The worker's thread allocates nothing once it is warm: not for a request, not for a chunk, not for
// a record.

#include "tests/support/thread_allocations.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedServer;

constexpr std::size_t kRound = 50;

// Allocations of the worker during four rounds, after two in which the session let every record of a
// round wait: as many buffers as can be under way at once were made.
std::uint64_t allocations_of(EngineRig& rig, const ScriptedServer& server) {
  base::Seq seq = 0;
  const auto issue = [&] {
    rig.issue(kRound, seq);
    seq += kRound;
  };
  rig.arm(base::Pacing::kClosedLoop, rig.config.slots);
  for (int warm = 0; warm < 2; ++warm) {
    issue();
    EXPECT_TRUE(EngineRig::wait([&] { return server.requests() == seq; }));
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(rig.pump_records(seq));
  }
  support::count_allocations("tutti-io-");
  for (int round = 0; round < 4; ++round) {
    issue();
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
  ScriptedServer server(streams(words));
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.config.target.stamp_every_chunk = true;
  EXPECT_EQ(allocations_of(rig, server), 0U);
}

TEST(EngineAllocation, JsonRepliesCostNoneOnceWarm) {
  ScriptedServer server([](const support::ScriptedRequest&) {
    return support::Script{
        support::send_bytes(support::json_reply(support::chat_json(std::string(300, 'y'))))};
  });
  EngineRig rig({server.url()}, false);
  rig.config.slots = 4;
  EXPECT_EQ(allocations_of(rig, server), 0U);
}

TEST(EngineAllocation, FreshConnectionsCostNoneOnceAsManyStood) {
  ScriptedServer server([](const support::ScriptedRequest&) {
    return support::Script{
        support::send_bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
                            "application/json\r\nContent-Length: " +
                            std::to_string(support::chat_json("hello").size()) + "\r\n\r\n" +
                            support::chat_json("hello")),
        support::close_now()};
  });
  EngineRig rig({server.url()}, false);
  rig.config.slots = 4;
  EXPECT_EQ(allocations_of(rig, server), 0U);
}

}  // namespace
}  // namespace tutti::drive
