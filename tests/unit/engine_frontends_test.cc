// Over real sockets, on both ways: which frontend, from which address, at which rate of connects.

#include <atomic>
#include <map>

#include "tests/support/raw_peer.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::RawPeer;
using support::ScriptedRequest;
using support::ScriptedServer;
using testing::HasSubstr;

std::map<std::string, int> counted(const std::vector<std::string>& peers) {
  std::map<std::string, int> counts;
  for (const auto& peer : peers) {
    ++counts[peer];
  }
  return counts;
}

// ---- source addresses ------------------------------------------------------------------------

TEST(EngineSources, ConnectionsComeEvenlyFromEverySourceToEveryFrontend) {
  // Nobody is answered before all have asked, so each has a connection of its own.
  std::atomic<int> asked{0};
  const auto answer = [&asked](const ScriptedRequest&) {
    ++asked;
    EngineRig::wait([&asked] { return asked >= 36; });
    return support::stream_script({"a"});
  };
  ScriptedServer a(answer);
  ScriptedServer b(answer);
  EngineRig rig({a.url(), b.url()});
  rig.config.slots = 36;
  rig.config.workers = 2;
  rig.config.target.source_addresses = {"127.0.1.1", "127.0.1.2", "127.0.1.3"};
  rig.arm(base::Pacing::kClosedLoop, 36);
  rig.issue(36);
  ASSERT_TRUE(rig.pump_records(36));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
  for (const auto* server : {&a, &b}) {
    auto counts = counted(server->peers());
    EXPECT_EQ(counts.size(), 3U);
    for (const auto& source : rig.config.target.source_addresses) {
      EXPECT_EQ(counts[source], 6) << source;
    }
  }
}

TEST(EngineSources, WarmConnectionsAndProbesComeFromThemToo) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 8;
  rig.config.target.connections_warm = 8;
  rig.config.target.source_addresses = {"127.0.1.1", "127.0.1.2"};
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_TRUE(rig.warmed->frontends[0].reachable) << rig.warmed->frontends[0].error;
  ASSERT_TRUE(EngineRig::wait([&] { return server.peers().size() == 9; }));
  auto counts = counted(server.peers());
  EXPECT_EQ(counts["127.0.1.1"] + counts["127.0.1.2"], 9) << "one of them the probe";
  EXPECT_GE(counts["127.0.1.1"], 4);
  EXPECT_GE(counts["127.0.1.2"], 4);
}

TEST(EngineSources, AnAddressThatIsNotOursIsRefusedByName) {
  EngineRig rig({"http://127.0.0.1:1/x"});
  rig.config.target.source_addresses = {"127.0.1.1", "192.0.2.77"};
  const auto started = Engine::start(rig.config, rig.clock);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, base::ExitCode::kSetup);
  EXPECT_THAT(started.error().message, HasSubstr("192.0.2.77 is not this host's"));
}

TEST(EngineSources, AFrontendThatNoSourceIsOfTheFamilyOfIsNamedBeforeTheRun) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.source_addresses = {"::1"};
  if (!Engine::start(rig.config, rig.clock)) {
    GTEST_SKIP() << "this host has no ::1";
  }
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_FALSE(rig.warmed->frontends[0].reachable);
  EXPECT_THAT(rig.warmed->frontends[0].error, HasSubstr("no source address is of its family"));
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, wire::Failure::kConnect);
  EXPECT_EQ(server.connections(), 0U);
}

// ---- the rate of connects --------------------------------------------------------------------

// Every reply ends its connection, so every query needs a new one.
support::Script one_reply(const ScriptedRequest& /*request*/) {
  const std::string body = support::chat_json("x");
  return {support::send_bytes(fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                          "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                                          body.size(), body)),
          support::close_now()};
}

TEST(EngineConnectRate, ABurstOfConnectsWaitsAndTheWaitIsOnRecord) {
  ScriptedServer server(one_reply);
  EngineRig rig({server.url()}, false);
  rig.config.slots = 40;
  rig.config.target.connect_rate_max = 100;  // a burst of one
  rig.arm(base::Pacing::kBurst, 40);
  rig.issue(40);
  ASSERT_TRUE(rig.pump_records(40));
  EXPECT_EQ(rig.seqs(), first_seqs(40));
  std::vector<Instant> sent;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    EXPECT_FALSE(record.connection_reused);
    sent.push_back(record.sent_at);
  }
  std::sort(sent.begin(), sent.end());
  // 40 connects at 100 a second: no window of n gaps is shorter than n − 1 gaps of 10 ms.
  EXPECT_GE(sent.back() - sent.front(), Duration::millis(380));
  EXPECT_EQ(server.connections(), 40U);
}

TEST(EngineConnectRate, AConnectionThatFallsIdleServesTheLine) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 20;
  rig.config.target.connect_rate_max = 2;
  rig.arm(base::Pacing::kBurst, 20);
  rig.issue(20);
  ASSERT_TRUE(rig.pump_records(20));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
  EXPECT_LT(server.connections(), 20U) << "each query opened one of its own";
}

TEST(EngineConnectRate, TheRequestTimeoutEndsAQueryInTheLine) {
  ScriptedServer server(one_reply);
  EngineRig rig({server.url()}, false);
  rig.config.slots = 3;
  rig.config.target.connect_rate_max = 1;
  rig.config.target.request_timeout = Duration::millis(900);
  rig.arm(base::Pacing::kBurst, 3);
  rig.issue(3);
  ASSERT_TRUE(rig.pump_records(3));
  int late = 0;
  for (const auto& record : rig.records) {
    if (record.outcome != wire::Outcome::kOk) {
      EXPECT_EQ(record.failure, wire::Failure::kRequestTimeout);
      EXPECT_FALSE(record.sent_at.is_set());
      EXPECT_EQ(record.connect_us, 0U);
      ++late;
    }
  }
  EXPECT_EQ(late, 2);
}

TEST(EngineConnectRate, WhatWaitsInTheLineIsCancelledWithTheRest) {
  ScriptedServer server(one_reply);
  EngineRig rig({server.url()}, false);
  rig.config.slots = 5;
  rig.config.target.connect_rate_max = 1;
  rig.arm(base::Pacing::kBurst, 5);
  rig.issue(5);
  ASSERT_TRUE(rig.pump_records(1));
  rig.engine().abort("enough");
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.seqs(), first_seqs(5));
}

TEST(EngineConnectRate, AFrontendThatDropsAllConnectionsIsNotStormed) {
  ScriptedServer server(streams({"a"}, 50ms));
  EngineRig rig({server.url()});
  rig.config.slots = 20;
  rig.config.target.connect_rate_max = 100;
  rig.arm(base::Pacing::kBurst, 20);
  rig.issue(20);
  ASSERT_TRUE(rig.pump_records(20));
  const std::size_t before = server.connections();
  server.close_idle();
  std::this_thread::sleep_for(100ms);
  rig.records.clear();
  rig.issue(20, 20);
  ASSERT_TRUE(rig.pump_records(20));
  std::vector<Instant> sent;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    sent.push_back(record.sent_at);
  }
  std::sort(sent.begin(), sent.end());
  // Replies take 50 ms, so those sent in the first 45 ms each had a connect of their own: five, and
  // more only where connects were slow to be done. A storm is twenty.
  const auto early = std::count_if(sent.begin(), sent.end(), [&](Instant at) {
    return at - sent.front() < Duration::millis(45);
  });
  EXPECT_LE(early, 12);
  EXPECT_GT(server.connections(), before);
}

// ---- frontends -------------------------------------------------------------------------------

TEST(EngineBalance, WeightedBurstsFollowTheWeightsToTheQuery) {
  ScriptedServer a(streams({"a"}));
  ScriptedServer b(streams({"a"}));
  ScriptedServer c(streams({"a"}));
  EngineRig rig({a.url(), b.url(), c.url()});
  rig.config.slots = 12;
  rig.config.workers = 3;
  rig.config.target.balance = base::Balance::kWeighted;
  rig.config.target.weights = {7, 2, 1};
  rig.arm(base::Pacing::kBurst, 12);
  rig.issue(200);
  ASSERT_TRUE(rig.pump_records(200));
  EXPECT_EQ(a.requests(), 140U);
  EXPECT_EQ(b.requests(), 40U);
  EXPECT_EQ(c.requests(), 20U);
}

TEST(EngineBalance, AWeightedClosedLoopHoldsItsSharesInFlight) {
  ScriptedServer slow(streams({"a"}, 20ms));
  ScriptedServer quick(streams({"a"}, 2ms));
  EngineRig rig({slow.url(), quick.url()});
  rig.config.slots = 12;
  rig.config.workers = 3;
  rig.config.target.balance = base::Balance::kWeighted;
  rig.config.target.weights = {2, 1};
  rig.arm(base::Pacing::kClosedLoop, 12);
  rig.issue(200);
  ASSERT_TRUE(rig.pump_records(200));
  EXPECT_LE(slow.in_flight_max(), 8U);
  EXPECT_LE(quick.in_flight_max(), 4U);
}

TEST(EngineBalance, WeightsThatDoNotFitAreRefused) {
  EngineRig rig({"http://127.0.0.1:1/x", "http://127.0.0.1:2/x"});
  rig.config.target.balance = base::Balance::kWeighted;
  for (const auto& weights : {std::vector<std::uint32_t>{}, {1}, {0, 0}, {1, 4'000'000'000}}) {
    rig.config.target.weights = weights;
    const auto started = Engine::start(rig.config, rig.clock);
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().message, HasSubstr("one weight per frontend"));
  }
}

TEST(EngineBalance, ASampleIsSentToOneFrontendAndNamedInItsHeader) {
  ScriptedServer a(streams({"a"}));
  ScriptedServer b(streams({"a"}));
  EngineRig rig({a.url(), b.url()});
  rig.config.slots = 6;
  rig.config.workers = 2;
  rig.config.target.balance = base::Balance::kAffinity;
  rig.config.target.affinity_header = "X-Session-ID";
  rig.arm(base::Pacing::kClosedLoop, 6);
  rig.issue(297);  // every sample three times
  ASSERT_TRUE(rig.pump_records(297));
  std::map<std::string, std::set<std::size_t>> where;
  for (const auto* server : {&a, &b}) {
    for (const auto& request : server->seen()) {
      const std::string session = request.header("X-Session-ID");
      where[session].insert(server == &a ? 0 : 1);
      const std::string row = session.substr(std::string("sample-").size());
      EXPECT_EQ(request.body, row_body(std::stoull(row))) << session;
    }
  }
  EXPECT_EQ(where.size(), 99U);
  for (const auto& [session, servers] : where) {
    EXPECT_EQ(servers.size(), 1U) << session;
  }
  EXPECT_GT(a.requests(), 60U);
  EXPECT_GT(b.requests(), 60U);
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
}

// The heads of both ways are the same to the byte, and so is what is said of their size.
TEST(EngineBalance, TheAffinityHeaderStandsInOnePlaceOnBothWays) {
  ScriptedServer server(streams({"a"}));
  std::vector<std::string> heads;
  std::vector<std::uint32_t> sizes;
  for (const auto way : {base::Way::kDirect, base::Way::kMulti}) {
    EngineRig rig({server.url()});
    rig.config.target.way = way;
    rig.config.target.affinity_header = "X-Session-ID";
    rig.arm(base::Pacing::kClosedLoop, 1);
    rig.issue(2, 11);
    ASSERT_TRUE(rig.pump_records(2));
    sizes.push_back(rig.records[1].bytes_up);
    heads.push_back(server.seen().back().head);
    EXPECT_EQ(rig.records[1].bytes_up, heads.back().size() + row_body(12).size());
  }
  EXPECT_THAT(heads[0], HasSubstr("X-Session-ID: sample-12\r\nContent-Length: "));
  EXPECT_EQ(heads[0], heads[1]);
  EXPECT_EQ(sizes[0], sizes[1]);
}

TEST(EngineBalance, ADeadFrontendDoesNotDrawTheTraffic) {
  ScriptedServer alive(streams({"a"}, 2ms));
  const std::string dead =
      fmt::format("http://127.0.0.1:{}/v1/chat/completions", support::closed_port());
  EngineRig rig({alive.url(), dead, alive.url(), alive.url()});
  rig.config.slots = 8;
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(400);
  ASSERT_TRUE(rig.pump_records(400));
  const auto failed = std::count_if(rig.records.begin(), rig.records.end(),
                                    [](const auto& r) { return r.outcome != wire::Outcome::kOk; });
  // A turn in four, but for those already there when the first one failed.
  EXPECT_LE(failed, 110);
  EXPECT_GE(failed, 60) << "it is not left out in silence";
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome != wire::Outcome::kOk, record.frontend == 1);
  }
}

// ---- half-closed -----------------------------------------------------------------------------

TEST(EngineHalfClosed, AReplyAfterTheServersLastRequestIsWholeAndItsConnectionIsNotUsedAgain) {
  const std::string answer = support::json_reply(support::chat_json("x"));
  const RawPeer peer([&](int fd, std::size_t) {
    RawPeer::read_until(fd, "\"p\"}");
    shutdown(fd, SHUT_RD);  // it will not read again; the reply still goes out
    const auto sent = write(fd, answer.data(), answer.size());
    EXPECT_EQ(sent, static_cast<ssize_t>(answer.size()));
    shutdown(fd, SHUT_WR);
    std::this_thread::sleep_for(30ms);
  });
  EngineRig rig({peer.url()}, false);
  rig.arm(base::Pacing::kClosedLoop, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    rig.issue(1, i);
    ASSERT_TRUE(rig.pump_records(i + 1));
    std::this_thread::sleep_for(60ms);
  }
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    EXPECT_FALSE(record.resent) << "the end was seen before the connection was used";
    EXPECT_FALSE(record.connection_reused);
  }
  EXPECT_EQ(peer.connections(), 3U);
}

}  // namespace
}  // namespace tutti::drive
