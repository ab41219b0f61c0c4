// Each fault as a client sees it at its socket.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
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

// One fast server for all of them; a request names its own fault.
class MockFaults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    mock_ = new MockProcess({"--ttft", "1ms", "--gap", "1ms", "--tokens", "6"});
  }
  static void TearDownTestSuite() {
    delete mock_;
    mock_ = nullptr;
  }

  static Wire ask(const std::string& fault, bool stream = true) {
    Wire wire(mock_->port());
    wire.send(chat(stream ? R"("stream":true)" : R"("stream":false)",
                   "x-tutti-fault: " + fault + "\r\n"));
    return wire;
  }
  static double played(const std::string& kind) {
    return mock_->metric("tutti_mock_faults_total{kind=\"" + kind + "\"}");
  }
  // The connection still serves.
  static bool serves(Wire& wire) {
    wire.send(chat());
    const std::string answer = wire.read_answer();
    return answer.find("data: [DONE]") != std::string::npos;
  }

  static MockProcess* mock_;
};
MockProcess* MockFaults::mock_ = nullptr;

// Role, contents, finish: how many events carry content, among those that parse.
int contents(const std::vector<std::string>& events) {
  int count = 0;
  for (const std::string& event : events) {
    const json parsed = json::parse(event, nullptr, false);
    if (parsed.is_object() && parsed.contains("choices") && !parsed["choices"].empty() &&
        parsed["choices"][0]["delta"].value("content", "") != "") {
      ++count;
    }
  }
  return count;
}

TEST_F(MockFaults, NoneGivesAWholeStream) {
  Wire wire = ask("none");
  const auto events = events_of(body_of(wire.read_answer()));
  EXPECT_EQ(contents(events), 6);
  ASSERT_EQ(events.size(), 9U);  // role, 6 contents, finish, [DONE]
  EXPECT_EQ(json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(json::parse(events[7])["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[8], "[DONE]");
  EXPECT_TRUE(serves(wire));
}

TEST_F(MockFaults, StatusAnswersAtOnceAndKeepsTheConnection) {
  Wire wire = ask("status:429");
  const std::string answer = wire.read_answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(json::parse(body_of(answer))["error"]["code"], 429);
  EXPECT_TRUE(serves(wire));
  EXPECT_EQ(played("status"), 1);
}

TEST_F(MockFaults, ResetGivesNoByteAndAReset) {
  Wire wire = ask("reset");
  EXPECT_EQ(wire.read_to_end(), "");
  EXPECT_TRUE(wire.saw_reset());
}

TEST_F(MockFaults, ResetAfterDeliversItsEventsFirst) {
  Wire wire = ask("reset-after:3");
  EXPECT_EQ(contents(events_of(body_of(wire.read_to_end()))), 3);
  EXPECT_TRUE(wire.saw_reset());
}

TEST_F(MockFaults, TruncateCutsTheBodyWithAFin) {
  Wire wire = ask("truncate:2");
  const std::string received = wire.read_to_end();
  EXPECT_EQ(contents(events_of(body_of(received))), 2);
  EXPECT_TRUE(wire.saw_fin());
  EXPECT_THAT(received, Not(HasSubstr("\r\n0\r\n\r\n")));
}

TEST_F(MockFaults, EndFinishesTheBodyWithoutFinishOrDone) {
  Wire wire = ask("end:2");
  const std::string answer = wire.read_answer();
  const auto events = events_of(body_of(answer));
  EXPECT_EQ(events.size(), 3U);
  EXPECT_EQ(contents(events), 2);
  EXPECT_TRUE(serves(wire));
}

TEST_F(MockFaults, StallIsSilentUntilTheClientGoes) {
  {
    Wire wire = ask("stall:2");
    wire.read_until("\"content\":\" tutti\"");
    EXPECT_TRUE(wire.is_silent(150));
    EXPECT_EQ(mock_->metric("tutti_mock_active_requests"), 1);
  }
  EXPECT_TRUE(mock_->metric_becomes("tutti_mock_active_requests", 0));
}

TEST_F(MockFaults, SlowHeadersPauseBehindTheStatusLine) {
  for (const bool stream : {true, false}) {
    const std::int64_t start = mono_ns();
    Wire wire = ask("slow-headers:200ms", stream);
    EXPECT_EQ(wire.read_until("\r\n"), "HTTP/1.1 200 OK\r\n");
    EXPECT_TRUE(wire.is_silent(100));
    EXPECT_THAT(wire.read_answer(), HasSubstr("tutti"));
    EXPECT_GE(mono_ns() - start, 200'000'000);
    EXPECT_TRUE(serves(wire));
  }
}

TEST_F(MockFaults, MalformedBreaksOneEventOnly) {
  Wire wire = ask("malformed:2");
  const auto events = events_of(body_of(wire.read_answer()));
  ASSERT_EQ(events.size(), 9U);
  EXPECT_EQ(contents(events), 5);
  EXPECT_FALSE(json::accept(events[2]));
}

TEST_F(MockFaults, ErrorEventsComeInAGoodAnswer) {
  Wire wire = ask("error-event:3");
  auto events = events_of(body_of(wire.read_answer()));
  ASSERT_EQ(events.size(), 6U);
  EXPECT_TRUE(json::parse(events[4]).contains("error"));
  EXPECT_EQ(events[5], "[DONE]");
  Wire named = ask("named-error:1");
  const std::string body = body_of(named.read_answer());
  EXPECT_THAT(body, HasSubstr("\n\nevent: error\ndata: {\"error\""));
  EXPECT_THAT(body, Not(HasSubstr("[DONE]")));
}

TEST_F(MockFaults, NoDoneLacksNothingElse) {
  Wire wire = ask("no-done");
  const auto events = events_of(body_of(wire.read_answer()));
  EXPECT_EQ(contents(events), 6);
  EXPECT_EQ(json::parse(events.back())["choices"][0]["finish_reason"], "stop");
}

TEST_F(MockFaults, JsonAnswersAStreamRequestWithADocument) {
  Wire wire = ask("json");
  const std::string answer = wire.read_answer();
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json"));
  EXPECT_EQ(json::parse(body_of(answer))["object"], "chat.completion");
}

TEST_F(MockFaults, EmptyIsA200WithoutABody) {
  Wire wire = ask("empty");
  EXPECT_THAT(wire.read_answer(), HasSubstr("Content-Length: 0\r\n"));
  EXPECT_TRUE(serves(wire));
}

TEST_F(MockFaults, CloseComesAfterAWholeAnswerThatPromisedToStay) {
  Wire wire = ask("close");
  const std::string answer = wire.read_answer();
  EXPECT_THAT(answer, HasSubstr("[DONE]"));
  EXPECT_THAT(answer, Not(HasSubstr("Connection")));
  wire.read_to_end();
  EXPECT_TRUE(wire.saw_fin());
}

TEST_F(MockFaults, NoAnswerIsSilence) {
  Wire wire = ask("no-answer");
  EXPECT_TRUE(wire.is_silent(200));
}

TEST_F(MockFaults, DripSendsTheSameBytesOneByOne) {
  Wire wire = ask("drip");
  const auto events = events_of(body_of(wire.read_answer()));
  EXPECT_EQ(events.size(), 9U);
  EXPECT_EQ(contents(events), 6);
  EXPECT_TRUE(serves(wire));
}

TEST_F(MockFaults, DocumentsAreCutSpoiltOrReplaced) {
  Wire truncated = ask("truncate:1", false);
  const std::string half = truncated.read_to_end();
  EXPECT_TRUE(truncated.saw_fin());
  EXPECT_FALSE(json::accept(body_of(half)));
  Wire reset = ask("reset-after:1", false);
  EXPECT_THAT(reset.read_to_end(), HasSubstr("Content-Length"));
  EXPECT_TRUE(reset.saw_reset());
  Wire malformed = ask("malformed:1", false);
  EXPECT_FALSE(json::accept(body_of(malformed.read_answer())));
  EXPECT_TRUE(serves(malformed));
  Wire error = ask("error-event:1", false);
  const std::string answer = error.read_answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(json::parse(body_of(answer))["error"]["code"], 500);
}

TEST_F(MockFaults, AFaultThatMakesNoSenseIsRefused) {
  Wire wire = ask("explode");
  const std::string answer = wire.read_answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, HasSubstr("explode"));
}

TEST(MockFaultScript, SelectsByRequestNumberOnTheCommandLine) {
  MockProcess mock({"--ttft", "0", "--gap", "0", "--tokens", "1", "--fault", "status:503@every:3",
                    "--fault", "empty@at:2"});
  Wire wire(mock.port());
  std::string kinds;
  for (int i = 0; i < 6; ++i) {
    wire.send(chat());
    const std::string answer = wire.read_answer();
    kinds += answer.find(" 503 ") != std::string::npos               ? 's'
             : answer.find("Content-Length: 0") != std::string::npos ? 'e'
                                                                     : '.';
  }
  EXPECT_EQ(kinds, ".es..s");
  EXPECT_EQ(mock.stop(SIGTERM), 0);
  EXPECT_THAT(mock.output(), HasSubstr("6 completions (3 finished, 0 cancelled, 3 with faults)"));
}

}  // namespace
}  // namespace tutti::mock_llm
