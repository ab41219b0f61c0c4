// Connections: kept, resent on, warmed, limited, secured, spread over frontends.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;
using testing::HasSubstr;

TEST(EngineConnection, KeptConnectionsAreUsedAgain) {
  ScriptedServer server(streams({"a", "b"}));
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(20);
  ASSERT_TRUE(rig.pump_records(20));
  EXPECT_EQ(server.connections(), 1U);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(rig.records[i].connection_reused, i > 0);
    EXPECT_EQ(rig.records[i].connect_us > 0, i == 0);
  }
}

TEST(EngineConnection, AConnectionClosedWhileIdleIsReplacedUnnoticed) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(1);
  ASSERT_TRUE(rig.pump_records(1));
  server.close_idle();
  std::this_thread::sleep_for(50ms);
  rig.issue(1, 1);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(rig.records[1].outcome, wire::Outcome::kOk);
  EXPECT_FALSE(rig.records[1].resent);
  EXPECT_FALSE(rig.records[1].connection_reused);
  EXPECT_EQ(server.connections(), 2U);
}

TEST(EngineConnection, AnIdleConnectionThatSpeaksDoesNotKeepTheLoopBusy) {
  ScriptedServer server([](const ScriptedRequest&) {
    auto script = support::stream_script({"a"});
    script.push_back(support::pause_for(5ms));
    script.push_back(support::send_bytes("HTTP/1.1 408 Request Timeout\r\n\r\n"));
    return script;
  });
  EngineRig rig({server.url()});
  rig.one();
  std::this_thread::sleep_for(50ms);
  rig.engine().health(rig.clock.mono());
  std::this_thread::sleep_for(400ms);
  // A loop that spins gets more than that even of a crowded machine.
  EXPECT_LT(rig.engine().health(rig.clock.mono()).cpu_busiest_worker, 0.02);
}

TEST(EngineConnection, ADeadKeptConnectionIsResentOnceAndSaysSo) {
  // The second request on a connection is read and answered by a close.
  ScriptedServer server([](const ScriptedRequest& request) {
    return request.on_connection == 0 ? support::stream_script({"a"})
                                      : support::Script{support::close_now()};
  });
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kMulti;  // libcurl asks again; see engine_direct_test.cc
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  const wire::Record& record = rig.records[1];
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_TRUE(record.resent);
  EXPECT_FALSE(record.connection_reused);
  EXPECT_EQ(server.requests(), 3U);
}

// libcurl counts over the life of a handle, and has five of them.
TEST(EngineConnection, AnyNumberOfQueriesOfOneSlotMayBeResent) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return request.on_connection == 0 ? support::stream_script({"a"})
                                      : support::Script{support::close_now()};
  });
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kMulti;
  rig.arm(base::Pacing::kClosedLoop, 1);
  constexpr std::size_t kQueries = 20;
  rig.issue(kQueries);
  ASSERT_TRUE(rig.pump_records(kQueries));
  for (std::size_t i = 1; i < kQueries; ++i) {
    EXPECT_EQ(rig.records[i].outcome, wire::Outcome::kOk) << rig.records[i].error_message;
    EXPECT_TRUE(rig.records[i].resent) << i;
  }
}

TEST(EngineConnection, ASecondDeadKeptConnectionIsAFailureNotAThirdTry) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return request.on_connection == 0 ? support::stream_script({"a"}, 20ms)
                                      : support::Script{support::close_now()};
  });
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kMulti;
  rig.config.slots = 3;
  rig.arm(base::Pacing::kClosedLoop, 3);
  rig.issue(3);
  ASSERT_TRUE(rig.pump_records(3));  // three kept connections
  rig.issue(1, 3);
  ASSERT_TRUE(rig.pump_records(4));
  const wire::Record& record = rig.records[3];
  EXPECT_EQ(record.failure, wire::Failure::kReset);
  EXPECT_TRUE(record.resent);
  EXPECT_EQ(server.requests(), 5U);
  EXPECT_THAT(record.error_message, HasSubstr("two kept connections"));
}

TEST(EngineConnection, TooLongIdleConnectionsAreNotUsed) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.idle_connection_max = Duration::seconds(1);
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  std::this_thread::sleep_for(1200ms);
  rig.issue(1, 2);
  ASSERT_TRUE(rig.pump_records(3));
  EXPECT_TRUE(rig.records[1].connection_reused);
  EXPECT_FALSE(rig.records[2].connection_reused);
}

TEST(EngineConnection, WithoutAnIdleLimitAConnectionIsKept) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.idle_connection_max = {};
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(1);
  ASSERT_TRUE(rig.pump_records(1));
  std::this_thread::sleep_for(2200ms);  // two whole seconds, as libcurl counts them
  rig.issue(1, 1);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_TRUE(rig.records[1].connection_reused);
}

TEST(EngineConnection, WarmOpensTheConnectionsThatTheFirstQueriesUse) {
  ScriptedServer a(streams({"a"}, 10ms));
  ScriptedServer b(streams({"a"}, 10ms));
  EngineRig rig({a.url(), b.url()});
  rig.config.slots = 12;
  rig.config.workers = 2;
  rig.config.target.connections_warm = 12;
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  ASSERT_EQ(rig.warmed->frontends.size(), 2U);
  EXPECT_TRUE(rig.warmed->frontends[0].reachable);
  EXPECT_GT(rig.warmed->frontends[1].connect_us, 0U);
  EXPECT_EQ(rig.warmed->connections_open, 12U);
  // Two probes per frontend, closed again, and six kept.
  ASSERT_TRUE(EngineRig::wait([&] { return a.connections() == 8 && b.connections() == 8; }));
  rig.arm(base::Pacing::kClosedLoop, 12);
  rig.issue(60);
  ASSERT_TRUE(rig.pump_records(60));
  EXPECT_EQ(a.connections() + b.connections(), 16U);
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
}

TEST(EngineConnection, WarmConnectionsThatDiedAreReplaced) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 4;
  rig.config.target.connections_warm = 4;
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  ASSERT_TRUE(EngineRig::wait([&] { return server.connections() == 5; }));
  server.close_idle();
  std::this_thread::sleep_for(50ms);
  rig.arm(base::Pacing::kBurst, 4);
  rig.issue(4);
  ASSERT_TRUE(rig.pump_records(4));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
}

TEST(EngineConnection, WarmNamesWhatIsNotReachable) {
  ScriptedServer server(streams({"a"}));
  const support::DeafPort deaf;
  EngineRig rig({server.url(),
                 fmt::format("http://127.0.0.1:{}/v1/chat/completions", support::closed_port()),
                 deaf.url()});
  rig.config.slots = 3;
  rig.config.target.connections_warm = 3;
  rig.config.target.connect_timeout = Duration::millis(200);
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  ASSERT_EQ(rig.warmed->frontends.size(), 3U);
  EXPECT_TRUE(rig.warmed->frontends[0].reachable);
  EXPECT_FALSE(rig.warmed->frontends[1].reachable);
  EXPECT_THAT(rig.warmed->frontends[1].error, HasSubstr("Connection refused"));
  EXPECT_FALSE(rig.warmed->frontends[2].reachable);
  EXPECT_THAT(rig.warmed->frontends[2].error, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(rig.warmed->connections_open, 1U);
}

TEST(EngineConnection, WarmingKeepsItsRate) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.slots = 21;
  rig.config.target.connections_warm = 21;
  rig.config.target.connect_rate_max = 100;
  const Instant begin = rig.clock.mono();
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_EQ(rig.warmed->connections_open, 21U);
  EXPECT_GE(rig.clock.mono() - begin, Duration::millis(195));  // 20 gaps of 10 ms after the first
}

TEST(EngineConnection, TheConnectionLimitHoldsAndNothingIsLost) {
  ScriptedServer a(streams({"a"}, 1ms));
  ScriptedServer b(streams({"a"}, 1ms));
  EngineRig rig({a.url(), b.url()});
  rig.config.slots = 9;
  rig.config.workers = 2;
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.config.target.connections_max = 3;
  rig.arm(base::Pacing::kClosedLoop, 9);
  rig.issue(150);
  ASSERT_TRUE(rig.pump_records(150));
  EXPECT_LE(a.in_flight_max(), 3U);
  EXPECT_LE(b.in_flight_max(), 3U);
  EXPECT_EQ(rig.seqs(), first_seqs(150));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
}

// TLS

TEST(EngineTls, AnUntrustedCertificateIsATlsFailure) {
  ScriptedServer server(streams({"a"}), true);
  EngineRig rig({server.url()});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, wire::Failure::kTls);
  EXPECT_THAT(record.error_message, HasSubstr("certificate"));
}

TEST(EngineTls, VerificationCanBeSwitchedOff) {
  ScriptedServer server(streams({"a", "b"}), true);
  EngineRig rig({server.url()});
  rig.config.target.verify_tls = false;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(5);
  ASSERT_TRUE(rig.pump_records(5));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  }
  EXPECT_GT(rig.records[0].tls_us, 0U);
  EXPECT_EQ(rig.records[4].tls_us, 0U);
  EXPECT_EQ(server.connections(), 1U);
}

TEST(EngineTls, ATrustedCertificateIsVerifiedAndWarmWorks) {
  ScriptedServer server(streams({"a"}), true);
  setenv("SSL_CERT_FILE", server.certificate_file().c_str(), 1);
  EngineRig rig({server.url()});
  rig.config.slots = 2;
  rig.config.target.connections_warm = 2;
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(rig.warmed->frontends[0].reachable) << rig.warmed->frontends[0].error;
  rig.arm(base::Pacing::kBurst, 2);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    // Direct has the handshake done ahead, libcurl does it on first use.
    if (rig.config.target.way == base::Way::kMulti) {
      EXPECT_TRUE(record.connection_reused || record.tls_us > 0);
    } else {
      EXPECT_EQ(record.tls_us, 0U);
      EXPECT_EQ(record.connect_us, 0U);
    }
  }
}

// Frontends

TEST(EngineFrontends, RoundRobinFollowsTheSequenceNumber) {
  ScriptedServer a(streams({"a"}));
  ScriptedServer b(streams({"a"}));
  EngineRig rig({a.url(), b.url()});
  rig.config.slots = 6;
  rig.config.workers = 3;
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.arm(base::Pacing::kClosedLoop, 6);
  rig.issue(100);
  ASSERT_TRUE(rig.pump_records(100));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.frontend, record.seq % 2);
  }
}

TEST(EngineFrontends, PinnedFollowsTheGlobalWorkerNumber) {
  ScriptedServer a(streams({"a"}));
  ScriptedServer b(streams({"a"}));
  EngineRig rig({a.url(), b.url()});
  rig.config.slots = 6;
  rig.config.workers = 3;
  rig.config.first_global_worker = 5;
  rig.config.target.balance = base::Balance::kPinned;
  rig.arm(base::Pacing::kClosedLoop, 6);
  rig.issue(90);
  ASSERT_TRUE(rig.pump_records(90));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.frontend, (5 + record.worker) % 2);
  }
}

TEST(EngineFrontends, LeastInFlightSpreadsEvenlyAndAvoidsTheSlowOne) {
  ScriptedServer slow(streams({"a"}, 400ms));
  ScriptedServer quick(streams({"a"}, 2ms));
  EngineRig rig({slow.url(), quick.url()});
  rig.config.slots = 8;
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(100);
  ASSERT_TRUE(rig.pump_records(100));
  EXPECT_LE(slow.in_flight_max(), 5U);  // half, and one more when both are level
  EXPECT_LT(slow.requests(), quick.requests());
}

}  // namespace
}  // namespace tutti::drive
