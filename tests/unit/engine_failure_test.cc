// Every way an exchange can fail, and what the record says of it.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;
using testing::HasSubstr;
using testing::Not;
using wire::Failure;

wire::Record record_of(support::Script script, bool streaming = true) {
  ScriptedServer server([&script](const ScriptedRequest&) { return script; });
  EngineRig rig({server.url()}, streaming);
  const wire::Record record = rig.one();
  rig.engine().stop();
  EXPECT_THAT(record.error_message, Not(HasSubstr("secret-key")));
  return record;
}

TEST(EngineFailure, AnHttpErrorKeepsStatusAndBodyAndTheConnection) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply(R"({"error":"busy"})", 503))};
  });
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(3);
  ASSERT_TRUE(rig.pump_records(3));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kFailed);
    EXPECT_EQ(record.failure, Failure::kHttpStatus);
    EXPECT_EQ(record.http_status, 503);
    EXPECT_THAT(record.error_message, HasSubstr("busy"));
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST(EngineFailure, ARedirectIsAFailureAndIsNotFollowed) {
  const wire::Record record = record_of({support::send_bytes(
      "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")});
  EXPECT_EQ(record.failure, Failure::kHttpStatus);
  EXPECT_EQ(record.http_status, 302);
}

TEST(EngineFailure, RefusedNamesTheFrontendAndTheCause) {
  EngineRig rig({fmt::format("http://127.0.0.1:{}/v1/chat/completions", support::closed_port())});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.outcome, wire::Outcome::kFailed);
  EXPECT_EQ(record.failure, Failure::kConnect);
  EXPECT_THAT(record.error_message, HasSubstr("127.0.0.1:"));
  EXPECT_THAT(record.error_message, HasSubstr("Connection refused"));
  EXPECT_FALSE(record.sent_at.is_set());
  EXPECT_FALSE(record.connection_reused);
  EXPECT_GE(record.done_at, record.issued_at);
}

TEST(EngineFailure, AnUnknownHostIsAConnectFailure) {
  EngineRig rig({"http://no-such-host.invalid:80/v1/chat/completions"});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kConnect);
  EXPECT_THAT(record.error_message, HasSubstr("no-such-host.invalid"));
}

TEST(EngineFailure, AHangingConnectEndsAtTheConnectTimeout) {
  const support::DeafPort deaf;
  EngineRig rig({deaf.url()});
  rig.config.target.connect_timeout = Duration::millis(150);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kConnectTimeout) << record.error_message;
  EXPECT_GE(record.done_at - record.issued_at, Duration::millis(149));
  EXPECT_LT(record.done_at - record.issued_at, Duration::seconds(5));
}

TEST(EngineFailure, ASilentServerEndsAtTheRequestTimeout) {
  ScriptedServer server(
      [](const ScriptedRequest&) { return support::Script{support::pause_for(30s)}; });
  EngineRig rig({server.url()});
  // Long after libcurl's own last timer, so that nothing but our deadline can end the wait.
  rig.config.target.request_timeout = Duration::millis(400);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kRequestTimeout);
  EXPECT_GE(record.done_at - record.issued_at, Duration::millis(400));
  EXPECT_LT(record.done_at - record.issued_at, Duration::seconds(5));
  EXPECT_THAT(record.error_message, HasSubstr("400 ms"));
}

TEST(EngineFailure, AStallInMidStreamKeepsWhatHadCome) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::stream_head() +
                                               support::http_chunk(support::content_event("part"))),
                           support::pause_for(30s)};
  });
  EngineRig rig({server.url()});
  rig.config.target.request_timeout = Duration::millis(150);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kRequestTimeout);
  EXPECT_EQ(record.content_events, 1U);
  EXPECT_TRUE(record.first_token_at.is_set());
  EXPECT_EQ(record.output.content_first, "part");
}

TEST(EngineFailure, TimeoutsOfManyEndInOrderAndEachOnItsOwnTime) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return request.number % 2 == 0 ? support::stream_script({"a"}, 20ms)
                                   : support::Script{support::pause_for(30s)};
  });
  EngineRig rig({server.url()});
  rig.config.slots = 8;
  rig.config.target.request_timeout = Duration::millis(200);
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(40);
  ASSERT_TRUE(rig.pump_records(40));
  for (const auto& record : rig.records) {
    if (record.outcome != wire::Outcome::kOk) {
      EXPECT_EQ(record.failure, Failure::kRequestTimeout);
      EXPECT_GE(record.done_at - record.issued_at, Duration::millis(200));
    }
  }
}

TEST(EngineFailure, ResetBeforeAReplyIsNotSentAgainOnANewConnection) {
  ScriptedServer server(
      [](const ScriptedRequest&) { return support::Script{support::reset_now()}; });
  EngineRig rig({server.url()});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kReset);
  EXPECT_FALSE(record.resent);
  EXPECT_EQ(server.requests(), 1U);
}

TEST(EngineFailure, ResetInMidStreamFails) {
  const wire::Record record =
      record_of({support::send_bytes(support::stream_head() +
                                     support::http_chunk(support::content_event("a"))),
                 support::pause_for(20ms), support::reset_now()});
  EXPECT_EQ(record.outcome, wire::Outcome::kFailed);
  EXPECT_EQ(record.failure, Failure::kReset);
  EXPECT_EQ(record.content_events, 1U);
}

TEST(EngineFailure, ACloseInsideACountedBodyFails) {
  const wire::Record record =
      record_of({support::send_bytes("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                     "Content-Length: 500\r\n\r\n{\"id\":"),
                 support::close_now()},
                false);
  EXPECT_EQ(record.outcome, wire::Outcome::kFailed);
  EXPECT_EQ(record.failure, Failure::kReset);
}

TEST(EngineFailure, WhatIsNotHttpIsABadReply) {
  const wire::Record record =
      record_of({support::send_bytes("SSH-2.0-OpenSSH_9.2\r\n"), support::close_now()});
  EXPECT_EQ(record.failure, Failure::kBadReply) << record.error_message;
}

TEST(EngineFailure, MalformedChunkingFails) {
  const wire::Record record = record_of(
      {support::send_bytes(support::stream_head() + "zz\r\nnonsense\r\n"), support::close_now()});
  EXPECT_EQ(record.outcome, wire::Outcome::kFailed);
}

TEST(EngineFailure, ARowThatIsNotThereFailsAndFreesItsSlot) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  auto commands = EngineRig::commands(0, 3);
  commands[0].sample = 100'000;
  commands[1].sample = EngineRig::kRows - 1;  // has no splice point
  commands[1].salted = true;
  ASSERT_EQ(rig.engine().issue(0, commands), 3U);
  ASSERT_TRUE(rig.pump_records(3));
  EXPECT_EQ(rig.records[0].failure, Failure::kInternal);
  EXPECT_THAT(rig.records[0].error_message, HasSubstr("row"));
  EXPECT_EQ(rig.records[1].failure, Failure::kInternal);
  EXPECT_THAT(rig.records[1].error_message, HasSubstr("salt"));
  EXPECT_EQ(rig.records[2].outcome, wire::Outcome::kOk);
  EXPECT_EQ(server.requests(), 1U);
}

TEST(EngineFailure, ADeadFrontendDoesNotStopTheOthersOrTheLoop) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({fmt::format("http://127.0.0.1:{}/x", support::closed_port()), server.url()});
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.config.slots = 4;
  rig.arm(base::Pacing::kClosedLoop, 4);
  rig.issue(200);
  ASSERT_TRUE(rig.pump_records(200));
  std::size_t failed = 0;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome == wire::Outcome::kOk, record.frontend == 1);
    failed += record.outcome == wire::Outcome::kFailed ? 1 : 0;
  }
  EXPECT_EQ(failed, 100U);
}

}  // namespace
}  // namespace tutti::drive
