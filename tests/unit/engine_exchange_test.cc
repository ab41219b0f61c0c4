// One query on the wire: bytes out, stamps and facts back.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;
using testing::HasSubstr;

TEST(EngineExchange, AStreamBecomesOneWholeRecord) {
  ScriptedServer server(streams({"Hel", "lo", "!"}, 3ms));
  EngineRig rig({server.url()});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_EQ(record.http_status, 200);
  EXPECT_TRUE(record.streamed);
  EXPECT_EQ(record.content_events, 3U);
  EXPECT_EQ(record.output.content_first + record.output.content_rest, "Hello!");
  EXPECT_EQ(record.finish_reason, wire::FinishReason::kStop);
  EXPECT_EQ(record.due_at, rig.start_at);
  EXPECT_GE(record.issued_at, record.due_at);
  EXPECT_GE(record.sent_at, record.issued_at);
  EXPECT_GT(record.first_byte_at, record.sent_at);
  // A busy client may read several events at once; before they were sent it cannot.
  EXPECT_GE(record.first_token_at, record.first_byte_at);
  EXPECT_GE(record.last_token_at, record.first_token_at);
  EXPECT_GE(record.last_token_at - record.sent_at, Duration::millis(8));
  EXPECT_GE(record.done_at, record.last_token_at);
  EXPECT_FALSE(record.connection_reused);
  EXPECT_FALSE(record.resent);
  EXPECT_GT(record.connect_us, 0U);
  EXPECT_EQ(record.tls_us, 0U);
  EXPECT_GT(record.bytes_down, 300U);
}

TEST(EngineExchange, RequestBytesAreExactlyTheConfiguredOnes) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.headers.push_back({"X-Empty", ""});
  const wire::Record record = rig.one();
  const ScriptedRequest request = server.seen().at(0);
  EXPECT_EQ(request.head, fmt::format("POST /v1/chat/completions HTTP/1.1\r\n"
                                      "Host: 127.0.0.1:{}\r\n"
                                      "Authorization: Bearer secret-key\r\n"
                                      "Content-Type: application/json\r\n"
                                      "Accept: text/event-stream\r\n"
                                      "X-Empty:\r\n"
                                      "Content-Length: 22\r\n\r\n",
                                      server.port()));
  EXPECT_EQ(request.body, row_body(0));
  EXPECT_EQ(record.bytes_up, request.head.size() + request.body.size());
}

TEST(EngineExchange, NoHeaderIsAddedThatWasNotAskedFor) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.headers.clear();
  rig.one();
  EXPECT_EQ(server.seen().at(0).head,
            fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                        "Content-Length: 22\r\n\r\n",
                        server.port()));
}

TEST(EngineExchange, ALargeBodyArrivesWholeWithoutExpect) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply(support::chat_json("x")))};
  });
  EngineRig rig({server.url()}, false);
  const std::string file = "/tmp/tutti-large-" + std::to_string(getpid());
  const std::string body = "{\"p\":\"" + std::string(3 << 20, 'x') + "\"}";
  auto writer = data::BodySetWriter::create(file);
  ASSERT_TRUE(writer->add(body, -1));
  ASSERT_TRUE(writer->finish());
  const auto bodies = data::BodySet::open(file);
  rig.config.bodies = &*bodies;
  const wire::Record record = rig.one();
  rig.engine().stop();
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_EQ(server.seen().at(0).body, body);
  EXPECT_EQ(server.seen().at(0).header("Expect"), "");
  std::filesystem::remove(file);
}

TEST(EngineExchange, TheSaltGoesToItsPlaceAndOnlyWhenAsked) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  auto commands = EngineRig::commands(0, 2);
  commands[0].salted = true;
  commands[0].salt = 0x00ab'cdef'0123'4567;
  ASSERT_EQ(rig.engine().issue(0, commands), 2U);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(server.seen().at(0).body, row_body(0, "[00abcdef01234567] "));
  EXPECT_EQ(server.seen().at(1).body, row_body(1));
  EXPECT_EQ(rig.records[0].bytes_up,
            server.seen().at(0).head.size() + server.seen().at(0).body.size());
}

TEST(EngineExchange, AJsonReplyIsReadWithoutTokenStamps) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply(support::chat_json("hi")))};
  });
  EngineRig rig({server.url()}, false);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_FALSE(record.streamed);
  EXPECT_FALSE(record.first_token_at.is_set());
  EXPECT_EQ(record.output.content_first + record.output.content_rest, "hi");
}

TEST(EngineExchange, InterimRepliesAndTrailersAreNotTheReply) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{
        support::send_bytes("HTTP/1.1 103 Early Hints\r\nContent-Type: application/json\r\n\r\n"),
        support::send_bytes(support::stream_head()),
        support::send_bytes(
            support::http_chunk(support::content_event("a") + support::finish_events())),
        support::send_bytes("0\r\nContent-Type: text/plain\r\n\r\n")};
  });
  EngineRig rig({server.url()});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_EQ(record.http_status, 200);
  EXPECT_TRUE(record.streamed);
}

TEST(EngineExchange, ByteByByteRepliesGiveTheSameRecord) {
  ScriptedServer server([](const ScriptedRequest&) {
    std::string all;
    for (const auto& step : support::stream_script({"one", "two", "three"})) {
      all += step.bytes;
    }
    support::Script script;
    for (const char c : all) {
      script.push_back(support::send_bytes(std::string(1, c)));
    }
    return script;
  });
  EngineRig rig({server.url()});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_EQ(record.output.content_first, "one");
  EXPECT_EQ(record.output.content_rest, "twothree");
}

TEST(EngineExchange, EveryChunkIsStampedWhenAsked) {
  ScriptedServer server(streams({"a", "b", "c"}, 4ms));
  EngineRig rig({server.url()});
  rig.config.target.stamp_every_chunk = true;
  const wire::Record record = rig.one();
  ASSERT_EQ(record.chunk_at.size(), 2U);
  EXPECT_GT(record.chunk_at[0], record.first_token_at);
  EXPECT_GT(record.chunk_at[1], record.chunk_at[0]);
  EXPECT_EQ(record.chunk_at[1], record.last_token_at);
}

TEST(EngineExchange, StampsAreNeverBeforeTheServersOwnSend) {
  std::atomic<std::int64_t> sent_ns{0};
  const base::SystemClock clock;
  ScriptedServer server([&](const ScriptedRequest&) {
    std::this_thread::sleep_for(5ms);
    sent_ns = clock.mono().ns;
    return support::stream_script({"a"});
  });
  EngineRig rig({server.url()});
  const wire::Record record = rig.one();
  EXPECT_GE(record.first_byte_at.ns, sent_ns.load());
  EXPECT_GE(record.first_token_at.ns, sent_ns.load());
}

}  // namespace
}  // namespace tutti::drive
