// Both ways onto the wire tell the same story: every script of a server gives the same record, but
// for stamps, connection times and the transport's own words.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::Script;
using support::ScriptedRequest;
using support::ScriptedServer;
using support::send_bytes;

struct Told {
  std::vector<wire::Record> records;
  std::vector<std::string> heads;
  std::size_t connections = 0;
};

Told run(base::Way way, const Script& script, bool streaming, std::size_t queries, bool tls = false,
         base::ApiType api = base::ApiType::kOpenAiChat) {
  // Not the ScriptedServer's port but its bytes are compared, so Host is cut out.
  ScriptedServer server([&script](const ScriptedRequest&) { return script; }, tls);
  EngineRig rig({server.url()}, streaming);
  rig.config.target.way = way;
  rig.config.target.api = api;
  rig.config.target.verify_tls = false;
  rig.config.target.stamp_every_chunk = true;
  rig.config.target.request_timeout = Duration::millis(400);
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(queries);
  EXPECT_TRUE(rig.pump_records(queries));
  Told told;
  told.records = rig.records;
  for (const auto& request : server.seen()) {
    std::string head = request.head;
    const std::size_t host = head.find("Host:");
    told.heads.push_back(head.erase(host, head.find("\r\n", host) - host));
  }
  told.connections = server.connections();
  rig.engine().stop();
  return told;
}

// Which stamps there are, not when.
wire::Record without_times(wire::Record record) {
  for (Instant* at : {&record.due_at, &record.issued_at, &record.sent_at, &record.first_byte_at,
                      &record.first_token_at, &record.last_token_at, &record.done_at}) {
    at->ns = at->is_set() ? 1 : 0;
  }
  for (Instant& at : record.chunk_at) {
    at.ns = 1;
  }
  record.dns_us = record.connect_us = record.tls_us = 0;
  // The port differs.
  record.bytes_up = 0;
  return record;
}

void expect_same(const wire::Record& direct, const wire::Record& multi, const std::string& name) {
  const wire::Record a = without_times(direct);
  wire::Record b = without_times(multi);
  EXPECT_EQ(a.failure, b.failure) << name << ": " << a.error_message << " | " << b.error_message;
  EXPECT_EQ(a.outcome, b.outcome) << name;
  EXPECT_EQ(a.http_status, b.http_status) << name;
  EXPECT_EQ(a.content_events, b.content_events) << name;
  EXPECT_EQ(a.bytes_down, b.bytes_down) << name;
  EXPECT_EQ(a.output, b.output) << name;
  b.error_message = a.error_message;  // the transport's own words
  if (a.failure == wire::Failure::kBadReply && a.http_status == 0) {
    b.first_byte_at = a.first_byte_at;  // libcurl tells of header lines only, not of other bytes
  }
  EXPECT_EQ(a, b) << name;
}

struct Case {
  const char* name;
  Script script;
  bool streaming = true;
};

Script bytes(const std::string& all) { return {send_bytes(all)}; }

Script byte_by_byte(const std::string& all) {
  Script script;
  for (const char c : all) {
    script.push_back(send_bytes(std::string(1, c)));
  }
  return script;
}

std::string stream_of(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& step : support::stream_script(words)) {
    all += step.bytes;
  }
  return all;
}

Script then(Script script, support::Step step) {
  script.push_back(support::pause_for(5ms));
  script.push_back(std::move(step));
  return script;
}

std::vector<Case> cases() {
  const std::string stream = stream_of({"one", " two", " three"});
  const std::string event = support::http_chunk(support::content_event("part"));
  const std::string json = support::json_reply(support::chat_json("hi"));
  const std::string close_head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
  const std::string error = "data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n";
  return {
      {"stream", bytes(stream)},
      {"stream byte by byte", byte_by_byte(stream)},
      {"stream then close", then(bytes(stream), support::close_now())},
      {"stream then reset", then(bytes(stream), support::reset_now())},
      {"events in one chunk",
       bytes(support::stream_head() +
             support::http_chunk(support::content_event("a") + support::content_event("b") +
                                 support::finish_events()) +
             support::last_chunk())},
      {"json", bytes(json), false},
      {"json byte by byte", byte_by_byte(json), false},
      {"json to a stream's question", bytes(json)},
      {"status 503", bytes(support::json_reply("{\"error\":\"busy\"}", 503))},
      {"status 302", bytes("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")},
      {"status 204", bytes("HTTP/1.1 204 No Content\r\n\r\n")},
      {"status 304", bytes("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n")},
      {"interim",
       bytes("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + stream)},
      {"http 1.0",
       then(bytes("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" +
                  support::chat_json("old")),
            support::close_now()),
       false},
      {"until close",
       then(bytes(close_head + support::content_event("a") + support::finish_events()),
            support::close_now())},
      {"until close, no done",
       then(bytes(close_head + support::content_event("a")), support::close_now())},
      {"connection close",
       then(bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"),
            support::close_now())},
      {"reset at once", {support::reset_now()}},
      {"closed at once", {support::close_now()}},
      {"reset in the stream", then(bytes(support::stream_head() + event), support::reset_now())},
      {"closed in the stream", then(bytes(support::stream_head() + event), support::close_now())},
      {"closed in a counted body",
       then(bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\""), support::close_now()),
       false},
      {"stalled", {send_bytes(support::stream_head() + event), support::pause_for(2s)}},
      {"no answer", {support::pause_for(2s)}},
      {"error event",
       bytes(support::stream_head() + support::http_chunk(event + error) + support::last_chunk())},
      {"named error", bytes(support::stream_head() +
                            support::http_chunk("event: error\ndata: {\"message\":\"no\"}\n\n") +
                            support::last_chunk())},
      {"empty stream", bytes(support::stream_head() + support::last_chunk())},
      {"no done", bytes(support::stream_head() + event + support::last_chunk())},
      {"malformed event",
       bytes(support::stream_head() + support::http_chunk("data: {oops\n\n") + event +
             support::http_chunk(support::finish_events()) + support::last_chunk())},
      {"not http", then(bytes("SSH-2.0-OpenSSH_9.2\r\n"), support::close_now())},
      {"lower-case fields",
       bytes("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: "
             "chunked\r\n\r\n" +
             support::http_chunk(support::finish_events()) + support::last_chunk())},
  };
}

TEST(EngineWays, EveryScriptGivesTheSameRecord) {
  for (const auto& each : cases()) {
    const Told direct = run(base::Way::kDirect, each.script, each.streaming, 1);
    const Told multi = run(base::Way::kMulti, each.script, each.streaming, 1);
    ASSERT_EQ(direct.records.size(), 1U) << each.name;
    ASSERT_EQ(multi.records.size(), 1U) << each.name;
    expect_same(direct.records[0], multi.records[0], each.name);
    EXPECT_EQ(direct.heads, multi.heads) << each.name;
  }
}

std::string sglang_frame(const std::string& text, int tokens, const std::string& finish = "null") {
  return fmt::format(R"({{"text":"{}","output_ids":[1],"meta_info":{{"id":"a","finish_reason":{},)"
                     R"("prompt_tokens":4,"completion_tokens":{}}}}})",
                     text, finish, tokens);
}

std::string sglang_event(const std::string& text, int tokens, const std::string& finish = "null") {
  return "data: " + sglang_frame(text, tokens, finish) + "\n\n";
}

// SGLang's /generate, streamed and not.
std::vector<Case> sglang_cases() {
  const std::string stop = R"({"type":"stop"})";
  const std::string abort = R"({"type":"abort","message":"no room","status_code":503})";
  const std::string done = "data: [DONE]\n\n";
  const std::string part = sglang_event("He", 1);
  const std::string all = part + sglang_event("Hey", 2) + sglang_event("Hey you", 3, stop) + done;
  const auto chunked = [](const std::string& events) {
    return support::stream_head() + support::http_chunk(events) + support::last_chunk();
  };
  const std::string cut = support::stream_head() + support::http_chunk(part);
  return {
      {"frames", bytes(chunked(all))},
      {"frames byte by byte", byte_by_byte(chunked(all))},
      {"frames until close",
       then(bytes("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + all),
            support::close_now())},
      {"no done", bytes(chunked(part))},
      {"closed in the stream", then(bytes(cut), support::close_now())},
      {"reset in the stream", then(bytes(cut), support::reset_now())},
      {"stalled", {send_bytes(cut), support::pause_for(2s)}},
      {"aborted", bytes(chunked(part + sglang_event("He", 1, abort) + done))},
      {"a frame without text", bytes(chunked(part + "data: {}\n\n" + done))},
      {"chat where frames should be",
       bytes(chunked(support::content_event("a") + support::finish_events()))},
      {"error event", bytes(chunked(part + "data: {\"error\":{\"message\":\"no\"}}\n\n"))},
      {"status 400", bytes(support::json_reply(R"({"error":{"message":"too long"}})", 400))},
      {"one document", bytes(support::json_reply(sglang_frame("Hey", 2, stop))), false},
      {"one document byte by byte", byte_by_byte(support::json_reply(sglang_frame("Hey", 2, stop))),
       false},
      {"a document without text", bytes(support::json_reply(R"({"meta_info":{}})")), false},
      {"an aborted document", bytes(support::json_reply(sglang_frame("", 0, abort))), false},
      {"a document cut short",
       then(bytes("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"text\":\"a"),
            support::close_now()),
       false},
  };
}

std::vector<Case> video_cases() {
  const std::string named = R"({"video_id":"v","video_path":"/videos/v.mp4"})";
  return {
      {"a video's path", bytes(support::json_reply(named)), false},
      {"byte by byte", byte_by_byte(support::json_reply(named)), false},
      {"a video's bytes", bytes(support::json_reply(R"({"video_id":"v","video_bytes":"AAAA"})")),
       false},
      {"no video", bytes(support::json_reply(R"({"video_id":"v"})")), false},
      {"status 500", bytes(support::json_reply("{}", 500)), false},
      {"closed at once", {support::close_now()}, false},
  };
}

TEST(EngineWays, EveryScriptOfTheOtherApisGivesTheSameRecord) {
  const std::pair<base::ApiType, std::vector<Case>> apis[] = {
      {base::ApiType::kSglang, sglang_cases()}, {base::ApiType::kVideogen, video_cases()}};
  for (const auto& [api, all] : apis) {
    std::set<wire::Failure> ends;
    for (const auto& each : all) {
      const Told direct = run(base::Way::kDirect, each.script, each.streaming, 1, false, api);
      const Told multi = run(base::Way::kMulti, each.script, each.streaming, 1, false, api);
      ASSERT_EQ(direct.records.size(), 1U) << each.name;
      ASSERT_EQ(multi.records.size(), 1U) << each.name;
      expect_same(direct.records[0], multi.records[0], each.name);
      EXPECT_EQ(direct.heads, multi.heads) << each.name;
      ends.insert(direct.records[0].failure);
    }
    EXPECT_GE(ends.size(), 4U) << "the scripts end in different ways";
    EXPECT_EQ(ends.count(wire::Failure::kNone), 1U);
  }
}

TEST(EngineWays, BothKeepRawVideos) {
  const std::string video(
      "\0\0\0\x18"
      "ftypisom",
      12);
  const std::string reply =
      "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 12\r\n\r\n" + video;
  for (const base::Way way : {base::Way::kDirect, base::Way::kMulti}) {
    ScriptedServer server([&reply](const ScriptedRequest&) { return bytes(reply); });
    EngineRig rig({server.url()}, false);
    rig.config.target.way = way;
    rig.config.target.api = base::ApiType::kVideogen;
    const std::string folder = testing::TempDir() + "/tutti-ways-videos";
    rig.config.videos = {folder, base::Id{5, 6}};
    rig.arm(base::Pacing::kClosedLoop, 1);
    rig.issue(2);
    ASSERT_TRUE(rig.pump_records(2));
    for (const wire::Record& record : rig.records) {
      const std::string path =
          folder + "/" + base::query_id({5, 6}, record.phase, record.seq) + ".mp4";
      EXPECT_EQ(record.output.content_first, path) << record.error_message;
      EXPECT_EQ(std::filesystem::file_size(path), 12U);
    }
    std::filesystem::remove_all(folder);
    rig.engine().stop();
  }
}

// Without close_notify a close may be somebody else's, and says nothing of the body's end
// (RFC 9112, 9.8). libcurl 7.88 takes it for the end all the same.
bool ends_by_close_alone(const Case& each) {
  return std::string(each.name) == "http 1.0" || std::string(each.name) == "until close, no done";
}

TEST(EngineWays, EveryScriptGivesTheSameRecordOverTls) {
  std::vector<Case> all = cases();
  const std::string stream = stream_of({"one", " two", " three"});
  const std::string close_head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
  all.push_back({"until goodbye",
                 then(bytes(close_head + support::content_event("a") + support::finish_events()),
                      support::goodbye())});
  all.push_back({"until goodbye, no done",
                 then(bytes(close_head + support::content_event("a")), support::goodbye())});
  all.push_back({"http 1.0 until goodbye",
                 then(bytes("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" +
                            support::chat_json("old")),
                      support::goodbye()),
                 false});
  all.push_back(
      {"goodbye in the stream",
       then(bytes(support::stream_head() + support::http_chunk(support::content_event("part"))),
            support::goodbye())});
  all.push_back({"goodbye at once", {support::goodbye()}});
  all.push_back({"new keys",
                 {support::new_keys(), send_bytes(stream.substr(0, 200)), support::new_keys(),
                  support::new_keys(), send_bytes(stream.substr(200))}});
  for (const auto& each : all) {
    const Told direct = run(base::Way::kDirect, each.script, each.streaming, 1, true);
    const Told multi = run(base::Way::kMulti, each.script, each.streaming, 1, true);
    ASSERT_EQ(direct.records.size(), 1U) << each.name;
    ASSERT_EQ(multi.records.size(), 1U) << each.name;
    EXPECT_EQ(direct.heads, multi.heads) << each.name;
    EXPECT_GT(direct.records[0].tls_us, 0U) << each.name;
    EXPECT_GT(multi.records[0].tls_us, 0U) << each.name;
    if (ends_by_close_alone(each)) {
      EXPECT_EQ(direct.records[0].failure, wire::Failure::kReset) << each.name;
      EXPECT_THAT(direct.records[0].error_message, testing::HasSubstr("close_notify"));
      EXPECT_NE(multi.records[0].failure, wire::Failure::kReset) << each.name;
    } else {
      expect_same(direct.records[0], multi.records[0], each.name);
    }
  }
}

// Where the ways differ, direct says more: libcurl calls broken framing a receive error.
TEST(EngineWays, BrokenChunksAreABadReplyForTheOneAndAResetForTheOther) {
  const Script script =
      then(bytes(support::stream_head() + "zz\r\nnonsense\r\n"), support::close_now());
  const wire::Record direct = run(base::Way::kDirect, script, true, 1).records.at(0);
  EXPECT_EQ(direct.failure, wire::Failure::kBadReply);
  EXPECT_THAT(direct.error_message, testing::HasSubstr("\"zz\" is not a chunk size"));
  EXPECT_EQ(run(base::Way::kMulti, script, true, 1).records.at(0).failure, wire::Failure::kReset);
}

TEST(EngineWays, ConnectionsAreKeptAndDroppedAlike) {
  const std::string json = support::json_reply(support::chat_json("hi"));
  const Case kept[] = {
      {"stream", bytes(stream_of({"a"}))},
      {"json", bytes(json), false},
      {"status 503", bytes(support::json_reply("{}", 503)), false},
      {"status 204", bytes("HTTP/1.1 204 No Content\r\n\r\n")},
      {"http 1.0 kept",
       bytes("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}"), false},
      {"close said",
       {send_bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"),
        support::close_now()},
       false},
      {"http 1.0",
       {send_bytes("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"), support::close_now()},
       false},
  };
  for (const bool tls : {false, true}) {
    for (const auto& each : kept) {
      const Told direct = run(base::Way::kDirect, each.script, each.streaming, 4, tls);
      const Told multi = run(base::Way::kMulti, each.script, each.streaming, 4, tls);
      EXPECT_EQ(direct.connections, multi.connections) << each.name << " tls " << tls;
      for (std::size_t i = 0; i < 4; ++i) {
        expect_same(direct.records.at(i), multi.records.at(i), each.name);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::drive
