// tutti-mock as a process: HTTP, schedule, places, limits, signals, TLS.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/integration/mock_process.h"

namespace tutti::mock_llm {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::vector<std::string> kFast = {"--ttft", "0", "--gap", "0", "--tokens", "3"};

TEST(MockServer, EventsKeepTheirScheduleByTheServersOwnStamps) {
  MockProcess mock({"--ttft", "60ms", "--gap", "5ms", "--tokens", "20", "--stamp"});
  Wire wire(mock.port());
  const std::int64_t sent = mono_ns();
  wire.send(chat());
  const auto events = events_of(body_of(wire.read_answer()));
  const std::int64_t read = mono_ns();
  std::vector<std::int64_t> stamps;
  for (const std::string& event : events) {
    const json parsed = json::parse(event, nullptr, false);
    if (parsed.is_object() && parsed["choices"][0]["delta"].value("content", "") != "") {
      stamps.push_back(parsed["tutti_sent_ns"]);
    }
  }
  ASSERT_EQ(stamps.size(), 20U);
  // Never early against the schedule; how late it may be depends on the machine.
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    EXPECT_GE(stamps[i], sent + 60'000'000 + static_cast<std::int64_t>(i) * 5'000'000);
  }
  EXPECT_LE(stamps.back(), read);
  EXPECT_LE(stamps.back() - stamps.front(), 19 * 5'000'000 + 1'000'000'000) << "gaps add up";
}

TEST(MockServer, ADocumentComesWhenItsStreamWouldEnd) {
  MockProcess mock({"--ttft", "50ms", "--gap", "10ms", "--tokens", "11"});
  Wire wire(mock.port());
  const std::int64_t start = mono_ns();
  wire.send(chat(R"("max_completion_tokens":6)"));
  const json document = json::parse(body_of(wire.read_answer()));
  EXPECT_GE(mono_ns() - start, 100'000'000);
  EXPECT_EQ(document["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(document["usage"]["completion_tokens"], 6);
  EXPECT_EQ(document["usage"]["prompt_tokens"], 2);
}

TEST(MockServer, PipelinedRequestsAreAnsweredInOrderWhateverTheCut) {
  MockProcess mock({"--ttft", "1ms", "--gap", "0", "--text", "echo"});
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    bytes +=
        post("/v1/completions", fmt::format(R"({{"prompt":"w{}","stream":{}}})", i, i % 2 == 0));
  }
  bytes += "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{37}}) {
    Wire wire(mock.port());
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_TRUE(wire.send(bytes.substr(at, piece)));
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_THAT(wire.read_answer(), HasSubstr(fmt::format("\"w{}\"", i))) << piece;
    }
    EXPECT_THAT(wire.read_answer(), HasSubstr("{\"status\":\"ok\"}")) << piece;
  }
}

TEST(MockServer, LargeBodiesArriveByLengthByChunksAndAfterContinue) {
  MockProcess mock(kFast);
  const std::string body = fmt::format(R"({{"prompt":"{}"}})", std::string(5 << 20, 'p'));
  Wire wire(mock.port());
  wire.send(post("/v1/completions", body));
  EXPECT_THAT(wire.read_answer(), StartsWith("HTTP/1.1 200 "));
  wire.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (std::size_t at = 0; at < body.size(); at += 100'000) {
    const std::string part = body.substr(at, 100'000);
    wire.send(fmt::format("{:x}\r\n{}\r\n", part.size(), part));
  }
  wire.send("0\r\n\r\n");
  EXPECT_THAT(wire.read_answer(), StartsWith("HTTP/1.1 200 "));
  wire.send(
      fmt::format("POST /v1/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                  "Content-Length: {}\r\n\r\n",
                  body.size()));
  EXPECT_EQ(wire.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  wire.send(body);
  EXPECT_THAT(wire.read_until("\"usage\""), HasSubstr("HTTP/1.1 200 OK"));
}

TEST(MockServer, TooLargeAndBrokenRequestsAreToldSoAndTheConnectionEnds) {
  MockProcess mock({"--max-body", "1k"});
  Wire large(mock.port());
  large.send(post("/v1/completions", std::string(300'000, 'x')));
  EXPECT_THAT(large.read_to_end(), StartsWith("HTTP/1.1 413 ")) << "not lost to a reset";
  EXPECT_TRUE(large.saw_fin());
  Wire broken(mock.port());
  broken.send("NONSENSE\r\n\r\n");
  EXPECT_THAT(broken.read_to_end(), StartsWith("HTTP/1.1 400 "));
  Wire json_error(mock.port());
  json_error.send(post("/v1/chat/completions", "{"));
  EXPECT_THAT(json_error.read_answer(), StartsWith("HTTP/1.1 400 "));
  json_error.send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(json_error.read_answer(), StartsWith("HTTP/1.1 404 ")) << "the connection was kept";
  json_error.send("DELETE /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(json_error.read_answer(), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(mock.metric("tutti_mock_refused_total"), 5);
}

TEST(MockServer, Http10AndCloseEndTheConnectionAfterTheAnswer) {
  MockProcess mock(kFast);
  Wire old(mock.port());
  const std::string body = R"({"prompt":"a","stream":true})";
  old.send(fmt::format("POST /v1/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(),
                       body));
  const std::string received = old.read_to_end();
  EXPECT_TRUE(old.saw_fin());
  EXPECT_THAT(received, StartsWith("HTTP/1.0 200 OK\r\n"));
  EXPECT_THAT(received, Not(HasSubstr("chunked")));
  EXPECT_EQ(events_of(body_of(received)).size(), 5U);
  Wire closing(mock.port());
  closing.send(chat(R"("stream":true)", "Connection: close\r\n"));
  EXPECT_THAT(closing.read_to_end(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(closing.saw_fin());
}

TEST(MockServer, RequestsBeyondMaxConcurrencyWaitAndGoneOnesLeaveTheQueue) {
  MockProcess mock({"--ttft", "150ms", "--gap", "0", "--tokens", "1", "--max-concurrency", "1"});
  Wire first(mock.port());
  const std::int64_t start = mono_ns();
  first.send(chat());
  ASSERT_TRUE(mock.metric_becomes("tutti_mock_active_requests", 1));
  Wire last(mock.port());
  {
    Wire gone(mock.port());
    gone.send(chat());
    ASSERT_TRUE(mock.metric_becomes("tutti_mock_queued_requests", 1));
    last.send(chat());
    ASSERT_TRUE(mock.metric_becomes("tutti_mock_queued_requests", 2));
  }
  EXPECT_TRUE(mock.metric_becomes("tutti_mock_cancelled_total", 1));
  EXPECT_THAT(first.read_answer(), HasSubstr("[DONE]"));
  EXPECT_THAT(last.read_answer(), HasSubstr("[DONE]"));
  EXPECT_GE(mono_ns() - start, 300'000'000);
  EXPECT_EQ(mock.metric("tutti_mock_active_requests_peak"), 1);
  EXPECT_EQ(mock.metric("tutti_mock_queued_requests"), 0);
}

TEST(MockServer, ASlowReaderLosesNothingAndDelaysNobody) {
  MockProcess mock(
      {"--ttft", "0", "--gap", "0", "--tokens", "900000", "--tokens-per-chunk", "100"});
  Wire slow(mock.port());
  slow.send(chat());
  ASSERT_TRUE(mock.metric_reaches("tutti_mock_blocked_sends_total", 1));
  Wire other(mock.port());
  other.send(chat(R"("stream":true,"max_tokens":100)"));
  EXPECT_THAT(other.read_answer(), HasSubstr("\"length\""));
  const std::string answer = slow.read_answer(20'000);
  std::size_t words = 0;
  for (std::size_t at = 0; (at = answer.find("tutti", at)) != std::string::npos; ++at) {
    ++words;
  }
  EXPECT_EQ(words, 900'000U);
  EXPECT_EQ(events_of(body_of(answer)).back(), "[DONE]");
}

TEST(MockServer, WithoutFileDescriptorsItPausesAcceptingAndGoesOn) {
  MockProcess mock(kFast, 40);
  std::vector<Wire> wires;
  wires.emplace_back(mock.port());
  // UBSan opens a pipe the first time it checks a type: let it do so while descriptors are left.
  wires.front().send(chat());
  EXPECT_THAT(wires.front().read_answer(), HasSubstr("[DONE]"));
  while (wires.size() < 60) {
    wires.emplace_back(mock.port());
  }
  // The first are served, the last wait in the kernel's queue.
  wires.front().send(chat());
  EXPECT_THAT(wires.front().read_answer(), HasSubstr("[DONE]"));
  wires.back().send(chat());
  EXPECT_TRUE(wires.back().is_silent(300));
  wires.erase(wires.begin(), wires.begin() + 30);
  EXPECT_THAT(wires.back().read_answer(), HasSubstr("[DONE]"));
  wires.erase(wires.begin(), wires.end() - 1);
  EXPECT_GE(mock.metric("tutti_mock_accept_pauses_total"), 1);
}

TEST(MockServer, CountsEachPortApart) {
  MockProcess mock({"--ttft", "0", "--gap", "0", "--tokens", "3", "--port", "0"});
  ASSERT_EQ(mock.ports().size(), 2U);
  Wire first(mock.ports()[0]);
  first.send(chat());
  first.read_answer();
  Wire second(mock.ports()[1]);
  for (int i = 0; i < 2; ++i) {
    second.send(chat());
    second.read_answer();
  }
  const auto requests = [&](std::uint16_t port) {
    return mock.metric(fmt::format("tutti_mock_requests_total{{port=\"{}\"}}", port));
  };
  EXPECT_EQ(requests(mock.ports()[1]), 2);
  EXPECT_GE(requests(mock.ports()[0]), 1);
  EXPECT_EQ(mock.metric("tutti_mock_tokens_total"), 9);
  EXPECT_EQ(mock.metric("tutti_mock_chunks_total"), 9);
  EXPECT_EQ(mock.metric("tutti_mock_finished_total"), 3);
}

TEST(MockServer, AnEarlyHeadComesBeforeTheFirstToken) {
  MockProcess mock({"--ttft", "300ms", "--gap", "0", "--tokens", "2", "--head", "early"});
  Wire wire(mock.port());
  const std::int64_t start = mono_ns();
  wire.send(chat());
  wire.read_until("\"role\":\"assistant\"");
  EXPECT_LT(mono_ns() - start, 290'000'000);
  EXPECT_TRUE(wire.is_silent(50));
  EXPECT_THAT(wire.read_answer(), HasSubstr("[DONE]"));
  EXPECT_GE(mono_ns() - start, 300'000'000);
}

TEST(MockServer, IdleConnectionsAreClosedWhenAsked) {
  MockProcess mock({"--ttft", "0", "--gap", "0", "--tokens", "1", "--idle-timeout", "100ms"});
  Wire wire(mock.port());
  wire.send(chat());
  EXPECT_THAT(wire.read_answer(), HasSubstr("[DONE]"));
  wire.read_to_end(3000);
  EXPECT_TRUE(wire.saw_fin());
}

TEST(MockServer, TheNullServerAnswersOneReadyDocument) {
  MockProcess mock({"--null"});
  Wire wire(mock.port());
  wire.send(post("/v1/chat/completions", "not json at all"));
  const std::string answer = wire.read_answer();
  const json document = json::parse(body_of(answer));
  EXPECT_EQ(document["choices"][0]["message"]["content"], "tutti");
  EXPECT_LE(answer.size(), 400U);
}

// How often a mock gave its core up by itself while it served one request after the other.
long sleeps_of(const std::vector<std::string>& arguments) {
  constexpr int kRequests = 300;
  rusage before{};
  getrusage(RUSAGE_CHILDREN, &before);
  MockProcess mock(arguments);
  Wire wire(mock.port());
  for (int i = 0; i < kRequests; ++i) {
    wire.send(post("/v1/chat/completions", "{}"));
    EXPECT_FALSE(wire.read_answer().empty());
  }
  EXPECT_EQ(mock.stop(SIGTERM), 0);
  rusage after{};
  getrusage(RUSAGE_CHILDREN, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

TEST(MockServer, ASpinningOneNeverSleeps) {
  const long spinning = sleeps_of({"--null", "--spin"});
  EXPECT_LT(spinning * 3, sleeps_of({"--null"}));
}

TEST(MockServer, ModelsAreListed) {
  MockProcess mock({"--model", "a", "--model", "b \"q\""});
  Wire wire(mock.port());
  wire.send("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
  const json list = json::parse(body_of(wire.read_answer()));
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][1]["id"], "b \"q\"");
}

TEST(MockServer, SignalsEndItCleanlyWithOneLineOfTotals) {
  for (const int signal : {SIGINT, SIGTERM}) {
    MockProcess mock({"--ttft", "10s"});
    Wire wire(mock.port());
    wire.send(chat());
    ASSERT_TRUE(mock.metric_becomes("tutti_mock_active_requests", 1));
    EXPECT_EQ(mock.stop(signal), 0);
    EXPECT_THAT(mock.output(), HasSubstr("tutti-mock: 1 completions"));
  }
}

TEST(MockServer, MistakesAreToldAtOnceAndATakenPortByName) {
  MockProcess wrong({"--gap", "5", "--text", "loud", "--what"});
  EXPECT_EQ(wrong.wait_for_exit(), 1);
  const std::string said = wrong.output();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
  MockProcess first(kFast);
  MockProcess second({"--port", std::to_string(first.port())});
  EXPECT_EQ(second.wait_for_exit(), 3);
  EXPECT_THAT(second.output(), HasSubstr(fmt::format("--port: {}", first.port())));
}

// Certificate and key in a folder of their own.
class MockTls : public testing::Test {
 protected:
  MockTls()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("tutti_mock_tls_{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
    made_ = std::system(fmt::format("openssl req -x509 -newkey ec -pkeyopt "
                                    "ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost "
                                    "-keyout {} -out {} 2>/dev/null",
                                    key(), cert())
                            .c_str()) == 0;
  }
  ~MockTls() override { std::filesystem::remove_all(folder_); }
  std::string cert() const { return (folder_ / "cert.pem").string(); }
  std::string key() const { return (folder_ / "key.pem").string(); }

  std::filesystem::path folder_;
  bool made_ = false;
};

TEST_F(MockTls, StreamsAndLargeBodiesPassThroughTls) {
  ASSERT_TRUE(made_) << "the openssl command is needed";
  MockProcess mock(
      {"--ttft", "1ms", "--gap", "1ms", "--tokens", "5", "--tls-cert", cert(), "--tls-key", key()});
  ASSERT_NE(mock.port(), 0) << mock.output();
  EXPECT_THAT(mock.output(), HasSubstr("https://127.0.0.1:"));
  const Wire wire(mock.port());
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), wire.fd());
  ASSERT_EQ(SSL_connect(ssl.get()), 1);
  const std::string large =
      fmt::format(R"({{"prompt":"{}","stream":true}})", std::string(1 << 20, 'p'));
  for (const std::string& request : {chat(), post("/v1/completions", large), chat()}) {
    ASSERT_EQ(SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())),
              static_cast<int>(request.size()));
    std::string received;
    char bytes[4096];
    while (received.find("0\r\n\r\n") == std::string::npos) {
      const int got = SSL_read(ssl.get(), bytes, sizeof bytes);
      ASSERT_GT(got, 0);
      received.append(bytes, static_cast<std::size_t>(got));
    }
    EXPECT_THAT(received, HasSubstr("[DONE]"));
  }
}

TEST_F(MockTls, APlainClientIsDroppedAndAWrongKeyIsRefused) {
  ASSERT_TRUE(made_) << "the openssl command is needed";
  MockProcess mock({"--tls-cert", cert(), "--tls-key", key()});
  Wire plain(mock.port());
  plain.send("GET / HTTP/1.1\r\n\r\n");
  plain.read_to_end();
  EXPECT_TRUE(plain.saw_fin() || plain.saw_reset());
  MockProcess wrong({"--tls-cert", cert(), "--tls-key", cert()});
  EXPECT_EQ(wrong.wait_for_exit(), 3);
  EXPECT_THAT(wrong.output(), HasSubstr("--tls-key"));
}

}  // namespace
}  // namespace tutti::mock_llm
