#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/mock_llm/chat_request.h"
#include "tests/mock_llm/http_request.h"

namespace tutti::mock_llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using State = RequestReader::State;

struct Seen {
  std::vector<std::string> bodies;
  std::vector<Route> routes;
  int refused = 0;
};

// Feeds `bytes` in pieces of `piece` bytes, as a server would.
Seen read_all(const std::string& bytes, std::size_t piece, RequestLimits limits = {}) {
  Seen seen;
  RequestReader reader(limits);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    // A copy of just this piece: a sanitizer then sees every read beyond it.
    const std::string part = bytes.substr(at, piece);
    std::string_view rest = part;
    while (!rest.empty()) {
      rest.remove_prefix(reader.feed(rest));
      if (reader.state() == State::kComplete) {
        seen.bodies.emplace_back(reader.body());
        seen.routes.push_back(reader.head().route);
        reader.reset();
      } else if (reader.state() == State::kRefused) {
        seen.refused = reader.refusal().status;
        return seen;
      }
    }
  }
  return seen;
}

int refused(const std::string& bytes, RequestLimits limits = {}) {
  const int whole = read_all(bytes, bytes.size(), limits).refused;
  const int split = read_all(bytes, 1, limits).refused;
  EXPECT_EQ(whole, split) << bytes;
  return whole;
}

const std::string kPost =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
const std::string kChunked =
    "POST /v1/completions?x=1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\nabc\r\n00A;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
const std::string kGet = "GET /metrics HTTP/1.1\nHost: a\n\n";

TEST(MockRequest, PipelinedRequestsReadTheSameWhateverTheCut) {
  const std::string bytes = kPost + kChunked + "\r\n" + kGet + kPost;
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Seen seen = read_all(bytes, piece);
    ASSERT_EQ(seen.refused, 0) << piece;
    ASSERT_THAT(seen.bodies, ElementsAre("hello", "abc0123456789", "", "hello")) << piece;
    ASSERT_THAT(seen.routes,
                ElementsAre(Route::kChat, Route::kCompletions, Route::kMetrics, Route::kChat));
  }
}

TEST(MockRequest, AWholeBodyIsNotCopied) {
  RequestReader reader(RequestLimits{});
  EXPECT_EQ(reader.feed(kPost), kPost.size());
  ASSERT_EQ(reader.state(), State::kComplete);
  EXPECT_EQ(reader.body().data(), kPost.data() + kPost.size() - 5);
  EXPECT_LE(reader.held_bytes(), 64U);
}

RequestHead head_of(const std::string& lines) {
  RequestHead head;
  const Refusal refusal = parse_head(lines, head);
  EXPECT_EQ(refusal.status, 0) << refusal.reason;
  return head;
}

TEST(MockRequest, ConnectionAndVersionDecideKeepAlive) {
  EXPECT_TRUE(head_of("GET /health HTTP/1.1\r\nHost: a\r\n\r\n").keep_alive);
  EXPECT_FALSE(head_of("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n").keep_alive);
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(head_of("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n").keep_alive);
}

TEST(MockRequest, TheFaultHeaderAndAbsoluteTargetsAreRead) {
  const RequestHead head = head_of(
      "POST http://h:1/v1/completions HTTP/1.1\r\nHost: a\r\nX-Tutti-Fault:  stall:3 \r\n\r\n");
  EXPECT_EQ(head.route, Route::kCompletions);
  EXPECT_EQ(head.fault, "stall:3");
}

TEST(MockRequest, ContinueIsAskedForOnceAndOnlyWhileTheBodyIsMissing) {
  RequestReader reader(RequestLimits{});
  reader.feed("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(reader.take_continue());
  EXPECT_FALSE(reader.take_continue());
  reader.feed("ok");
  EXPECT_EQ(reader.state(), State::kComplete);
  EXPECT_EQ(reader.body(), "ok");
}

TEST(MockRequest, MalformedAndAmbiguousHeadsAreRefused) {
  const auto with = [](const std::string& headers) {
    return "POST /v1/completions HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
  };
  EXPECT_EQ(refused("garbage\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET  HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("G@T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(refused("GET / FTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(refused(with("Host: b\r\n")), 400);
  EXPECT_EQ(refused(with("no colon\r\n")), 400);
  EXPECT_EQ(refused(with("name : space\r\n")), 400);
  EXPECT_EQ(refused(with("a: b\r\n folded\r\n")), 400);
  EXPECT_EQ(refused(with("a: b\x01\r\n")), 400);
  EXPECT_EQ(refused(with("Content-Length: -1\r\n")), 400);
  EXPECT_EQ(refused(with("Content-Length: 1, 1\r\n")), 400);
  EXPECT_EQ(refused(with("Content-Length: 1\r\nContent-Length: 2\r\n")), 400);
  EXPECT_EQ(refused(with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(refused(with("Content-Length: 99999999999999999999999\r\n")), 400);
  EXPECT_EQ(refused(with("Transfer-Encoding: gzip\r\n")), 501);
  EXPECT_EQ(refused(with("Expect: tea\r\n")), 417);
  EXPECT_EQ(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(MockRequest, MalformedChunksAreRefused) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refused(head + "x\r\n"), 400);
  EXPECT_EQ(refused(head + "\r\n"), 400);
  EXPECT_EQ(refused(head + "2\r\nabc\r\n"), 400);
  EXPECT_EQ(refused(head + "FFFFFFFFFFFFFFFF\r\n"), 413);
  EXPECT_EQ(refused(head + "0000000000000001\r\n"), 400) << "too many digits";
  EXPECT_EQ(refused(head + "1;" + std::string(5000, 'e') + "\r\n"), 400);
  EXPECT_EQ(refused(head + "0\r\n" + std::string(5000, 't') + "\r\n\r\n"), 400);
}

TEST(MockRequest, LimitsHoldForHeadsAndBothKindsOfBodies) {
  const RequestLimits limits{200, 10};
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refused(post + "a: " + std::string(300, 'x') + "\r\n\r\n", limits), 431);
  EXPECT_EQ(refused(post + "a: " + std::string(300, 'x'), limits), 431) << "endless head";
  EXPECT_EQ(refused(post + "Content-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(refused(post + "Content-Length: 10\r\n\r\n0123456789", limits), 0);
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refused(chunked + "8\r\n01234567\r\n3\r\n", limits), 413);
  EXPECT_EQ(refused(chunked + "8\r\n01234567\r\n2\r\n89\r\n0\r\n\r\n", limits), 0);
}

TEST(MockChat, ReadsWhatTheAnswerDependsOn) {
  ChatReader reader;
  const auto request = reader.read(
      R"({"model":"m\u00e9","messages":[{"role":"system","content":"be kind"},{"role":"user",)"
      R"("content":[{"type":"text","text":"one  two"},{"type":"image_url"},{"text":"three"}]}],)"
      R"("max_tokens":9,"max_completion_tokens":7,"stream":true,"n":1,)"
      R"("stream_options":{"include_usage":true},"tutti_fault":"no-done"})",
      Api::kChat);
  ASSERT_TRUE(request) << request.error();
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_FALSE(request->continuous_usage);
  EXPECT_EQ(request->max_tokens, 7U);
  EXPECT_EQ(request->model, "m\xc3\xa9");
  EXPECT_EQ(request->fault, "no-done");
  EXPECT_EQ(reader.prompt_words(), 5U);
  EXPECT_EQ(reader.echo_text(), "one  two three");
}

TEST(MockChat, CompletionPromptsAreTextOrTokenIds) {
  ChatReader reader;
  ASSERT_TRUE(reader.read(R"({"prompt":"a b c","max_tokens":null})", Api::kCompletions));
  EXPECT_EQ(reader.prompt_words(), 3U);
  EXPECT_EQ(reader.echo_text(), "a b c");
  ASSERT_TRUE(reader.read(R"({"prompt":[5,6]})", Api::kCompletions));
  EXPECT_EQ(reader.prompt_words(), 2U);
  EXPECT_EQ(reader.echo_text(), "");
  ASSERT_TRUE(reader.read(R"({"prompt":["x y"]})", Api::kCompletions));
  EXPECT_EQ(reader.prompt_words(), 2U);
}

TEST(MockChat, RefusalsNameTheField) {
  ChatReader reader;
  const auto error = [&](const char* body, Api api) {
    const auto request = reader.read(body, api);
    return request ? std::string("accepted") : request.error();
  };
  const std::string good = R"("messages":[{"role":"user","content":"x"}])";
  const auto with = [&](const char* field) { return fmt::format("{{{},{}}}", good, field); };
  EXPECT_THAT(error("{", Api::kChat), HasSubstr("not JSON"));
  EXPECT_THAT(error("", Api::kChat), HasSubstr("not JSON"));
  EXPECT_THAT(error("[1]", Api::kChat), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{}", Api::kChat), HasSubstr("messages"));
  EXPECT_THAT(error(R"({"messages":[]})", Api::kChat), HasSubstr("messages"));
  EXPECT_THAT(error(R"({"messages":[{}]})", Api::kChat), HasSubstr("role"));
  EXPECT_THAT(error(with(R"("stream":1)").c_str(), Api::kChat), HasSubstr("stream"));
  EXPECT_THAT(error(with(R"("max_tokens":-1)").c_str(), Api::kChat), HasSubstr("max_tokens"));
  EXPECT_THAT(error(with(R"("n":2)").c_str(), Api::kChat), HasSubstr("`n`"));
  EXPECT_THAT(error(with(R"("model":5)").c_str(), Api::kChat), HasSubstr("model"));
  EXPECT_THAT(error(R"({"prompt":["a","b"]})", Api::kCompletions), HasSubstr("one prompt"));
  EXPECT_THAT(error(R"({"prompt":[]})", Api::kCompletions), HasSubstr("prompt"));
  EXPECT_EQ(error(with(R"("n":null,"stream":null)").c_str(), Api::kChat), "accepted");
}

}  // namespace
}  // namespace tutti::mock_llm
