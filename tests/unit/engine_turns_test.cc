// Conversations on the wire: order, headers, marks, failures, time-outs, recall and abort.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Conversations of `turns` turns each, numbered through from 0; turn i asks row i.
struct Lease {
  std::vector<base::IssueCommand> commands;
  std::vector<wire::Trajectory> trajectories;
};
Lease talks(const std::vector<std::uint32_t>& turns) {
  Lease lease;
  for (const std::uint32_t count : turns) {
    for (const auto& command : EngineRig::commands(lease.commands.size(), count)) {
      lease.commands.push_back(command);
    }
    lease.trajectories.push_back({count, "talk-" + std::to_string(lease.trajectories.size())});
  }
  return lease;
}

class EngineTurns : public testing::TestWithParam<std::uint32_t> {
 protected:
  static void play(EngineRig& rig, const Lease& lease) {
    ASSERT_EQ(rig.engine().play(0, lease.commands, lease.trajectories), lease.commands.size());
  }
  static const wire::Record& of(const EngineRig& rig, base::Seq seq) {
    const auto found = std::find_if(rig.records.begin(), rig.records.end(),
                                    [seq](const wire::Record& r) { return r.seq == seq; });
    EXPECT_NE(found, rig.records.end()) << seq;
    return *found;
  }
};

TEST_P(EngineTurns, GoOutOneAfterTheOtherInOneSlotAndNameTheirConversation) {
  ScriptedServer server(streams({"a", "b"}, 2ms));
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.config.workers = GetParam();
  rig.config.target.routing_headers = {"X-Session-ID", "X-Also"};
  rig.arm(base::Pacing::kClosedLoop, 4);
  const Lease lease = talks({3, 1, 4, 2, 5, 1, 1, 3});
  play(rig, lease);
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.seqs(), first_seqs(lease.commands.size()));
  EXPECT_LE(server.in_flight_max(), 4U);
  base::Seq first = 0;
  for (const wire::Trajectory& trajectory : lease.trajectories) {
    for (base::Seq seq = first + 1; seq < first + trajectory.turns; ++seq) {
      EXPECT_EQ(of(rig, seq).outcome, wire::Outcome::kOk);
      EXPECT_EQ(of(rig, seq).due_at, of(rig, seq - 1).done_at) << "due when the one before ended";
      EXPECT_GE(of(rig, seq).issued_at, of(rig, seq - 1).done_at);
      EXPECT_EQ(of(rig, seq).worker, of(rig, seq - 1).worker);
    }
    first += trajectory.turns;
  }
  for (const ScriptedRequest& request : server.seen()) {
    base::Seq row = 0;
    ASSERT_EQ(std::sscanf(request.body.c_str(), "{\"row\":%lu", &row), 1);
    std::size_t talk = 0;
    for (base::Seq left = row; left >= lease.trajectories[talk].turns; ++talk) {
      left -= lease.trajectories[talk].turns;
    }
    EXPECT_EQ(request.header("X-Session-ID"), lease.trajectories[talk].conversation);
    EXPECT_EQ(request.header("X-Also"), lease.trajectories[talk].conversation);
    const std::size_t accept = request.head.find("Accept:");
    EXPECT_LT(accept, request.head.find("X-Session-ID:"));
    EXPECT_LT(request.head.find("X-Session-ID:"), request.head.find("X-Also:"));
    EXPECT_LT(request.head.find("X-Also:"), request.head.find("Content-Length:"));
    EXPECT_EQ(of(rig, row).bytes_up, request.head.size() + request.body.size());
  }
}

TEST_P(EngineTurns, WaitForTheirDelayAndCarryTheirMark) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 1);
  Lease lease = talks({2});
  for (auto& command : lease.commands) {
    command.salted = true;
    command.salt = 0xba75;
  }
  lease.commands[1].due_offset = Duration::millis(30);
  play(rig, lease);
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(of(rig, 1).due_at, of(rig, 0).done_at + Duration::millis(30));
  EXPECT_GE(of(rig, 1).issued_at, of(rig, 1).due_at);
  EXPECT_EQ(server.seen().at(1).body, row_body(1, "[salt: ba75"));
  EXPECT_EQ(of(rig, 1).bytes_up, server.seen()[1].head.size() + server.seen()[1].body.size());
}

TEST_P(EngineTurns, AFailureEndsTheConversationAndItsOtherTurnsAreNamed) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return request.body.find("\"row\":1,") != std::string::npos
               ? support::Script{support::send_bytes(support::json_reply("busy", 503))}
               : support::stream_script({"a"});
  });
  EngineRig rig({server.url()});
  rig.config.slots = 1;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 1);
  play(rig, talks({4, 2}));
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.seqs(), first_seqs(6));
  EXPECT_EQ(server.requests(), 4U) << "two of the first conversation, two of the next";
  EXPECT_EQ(of(rig, 1).failure, wire::Failure::kHttpStatus);
  for (const base::Seq seq : {2U, 3U}) {
    const wire::Record& skipped = of(rig, seq);
    EXPECT_EQ(skipped.outcome, wire::Outcome::kFailed);
    EXPECT_EQ(skipped.failure, wire::Failure::kTurnSkipped);
    EXPECT_EQ(skipped.error_message, "prior turn errored: error");
    EXPECT_EQ(skipped.issued_at, of(rig, 1).done_at);
    EXPECT_EQ(skipped.done_at, skipped.issued_at);
    EXPECT_EQ(skipped.sample, seq);
  }
  EXPECT_EQ(of(rig, 5).outcome, wire::Outcome::kOk) << "the slot is free for the next one";
  EXPECT_EQ(rig.engine().progress().started, 6U);
}

TEST_P(EngineTurns, ATurnThatTakesTooLongEndsItsConversationToo) {
  ScriptedServer server(
      [](const ScriptedRequest&) { return support::Script{support::pause_for(20s)}; });
  EngineRig rig({server.url()});
  rig.config.workers = GetParam();
  rig.config.target.request_timeout = Duration::seconds(15);
  rig.config.target.turn_timeout = Duration::millis(150);
  rig.arm(base::Pacing::kClosedLoop, 1);
  play(rig, talks({2}));
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(of(rig, 0).failure, wire::Failure::kTurnTimeout);
  EXPECT_EQ(of(rig, 0).error_message, "turn timeout after 0.15s");
  EXPECT_GE(of(rig, 0).done_at - of(rig, 0).issued_at, Duration::millis(150));
  EXPECT_EQ(of(rig, 1).failure, wire::Failure::kTurnSkipped);
  EXPECT_EQ(of(rig, 1).error_message, "prior turn timed out (query=0)");
}

// A frontend that goes down ends all conversations in one breath: more records than the ring holds.
TEST_P(EngineTurns, ManyThatFailAtOnceLoseNoRecord) {
  const auto port = support::closed_port();
  EngineRig rig({fmt::format("http://127.0.0.1:{}/v1/chat/completions", port)});
  rig.config.slots = 40;
  rig.config.workers = GetParam();
  rig.config.record_ring = 64;
  rig.arm(base::Pacing::kClosedLoop, 40);
  play(rig, talks(std::vector<std::uint32_t>(60, 50)));
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.engine().records_lost(), 0U);
  EXPECT_EQ(rig.seqs(), first_seqs(3000));
  EXPECT_THAT(of(rig, 2999).error_message, StartsWith("prior turn errored: ConnectionRefused"));
}

TEST_P(EngineTurns, ARecallLeavesWhatIsInFlightAndGivesBackTheRest) {
  ScriptedServer server(streams({"a", "b"}, 15ms));
  EngineRig rig({server.url()});
  rig.config.slots = 3;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 3);
  play(rig, talks({5, 5, 5, 5, 5, 5}));
  ASSERT_TRUE(rig.pump_records(4));
  rig.engine().recall(0, 7);
  ASSERT_TRUE(rig.pump([&] { return rig.recalled.size() == 1; }));
  ASSERT_TRUE(rig.drain());
  auto all = rig.seqs();
  EXPECT_LT(all.size(), 12U);
  EXPECT_EQ(server.requests(), all.size()) << "nothing went out after the answer";
  all.insert(all.end(), rig.recalled[0].unstarted.begin(), rig.recalled[0].unstarted.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, first_seqs(30));
  // The slots are free again.
  Lease next = talks({5, 5, 5, 5, 5, 5, 2, 2, 2});
  const std::vector<base::IssueCommand> more(next.commands.begin() + 30, next.commands.end());
  const std::vector<wire::Trajectory> their(next.trajectories.begin() + 6, next.trajectories.end());
  ASSERT_EQ(rig.engine().play(0, more, their), 6U);
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(of(rig, 35).outcome, wire::Outcome::kOk);
}

TEST_P(EngineTurns, AnAbortEndsTurnsInFlightAndSkipsNone) {
  ScriptedServer server(
      [](const ScriptedRequest&) { return support::Script{support::pause_for(20s)}; });
  EngineRig rig({server.url()});
  rig.config.slots = 2;
  rig.config.workers = GetParam();
  rig.arm(base::Pacing::kClosedLoop, 2);
  play(rig, talks({3, 3, 3}));
  ASSERT_TRUE(EngineRig::wait([&] { return server.requests() == 2; }));
  rig.engine().abort("enough");
  ASSERT_TRUE(rig.pump([&] { return rig.aborted.size() == 1; }));
  ASSERT_TRUE(rig.drain());
  EXPECT_THAT(rig.seqs(), ElementsAre(0, 3));
  EXPECT_EQ(of(rig, 0).outcome, wire::Outcome::kCancelled);
  ASSERT_EQ(rig.aborted[0].parts.size(), 1U);
  EXPECT_THAT(rig.aborted[0].parts[0].unstarted, ElementsAre(1, 2, 4, 5, 6, 7, 8));
}

TEST_P(EngineTurns, StayOnOneFrontendWithAffinity) {
  ScriptedServer one(streams({"a"}));
  ScriptedServer two(streams({"a"}));
  EngineRig rig({one.url(), two.url()});
  rig.config.slots = 4;
  rig.config.workers = GetParam();
  rig.config.target.balance = base::Balance::kAffinity;
  rig.config.target.affinity_header = "X-Route";
  rig.arm(base::Pacing::kClosedLoop, 4);
  const Lease lease = talks(std::vector<std::uint32_t>(12, 4));
  play(rig, lease);
  ASSERT_TRUE(rig.drain());
  std::set<std::uint16_t> used;
  for (base::Seq first = 0; first < 48; first += 4) {
    used.insert(of(rig, first).frontend);
    for (base::Seq seq = first + 1; seq < first + 4; ++seq) {
      EXPECT_EQ(of(rig, seq).frontend, of(rig, first).frontend) << seq;
    }
  }
  EXPECT_EQ(used.size(), 2U);
  for (const ScriptedRequest& request : one.seen()) {
    base::Seq row = 0;
    ASSERT_EQ(std::sscanf(request.body.c_str(), "{\"row\":%lu", &row), 1);
    EXPECT_THAT(request.header("X-Route"), HasSubstr(std::to_string(row / 4 * 4)));
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, EngineTurns, testing::Values(1U, 2U));

}  // namespace
}  // namespace tutti::drive
