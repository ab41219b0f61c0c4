#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/mock_llm/facts.h"
#include "tests/mock_llm/reply.h"

namespace tutti::mock_llm {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class MockReply : public testing::Test {
 protected:
  MockReply() {
    exchange_.number = 0x2a;
    exchange_.created_unix_s = 1700000000;
    exchange_.tokens = 3;
    exchange_.stream = true;
  }

  // Every event of a whole stream, unframed.
  std::vector<std::string> events() {
    ReplyWriter writer(options_, models_);
    std::vector<std::string> out;
    const auto take = [&](const std::string& text) {
      EXPECT_EQ(text.substr(0, 6), "data: ");
      EXPECT_EQ(text.substr(text.size() - 2), "\n\n");
      out.push_back(text.substr(6, text.size() - 8));
    };
    std::uint32_t event = 0;
    for (std::uint32_t sent = 0; sent < exchange_.tokens;) {
      const Piece piece = writer.piece(exchange_, sent, ++event);
      std::string text;
      writer.content_event(text, exchange_, piece, 77);
      take(text);
      sent += piece.count;
    }
    EXPECT_EQ(event, writer.event_count(exchange_));
    std::string text;
    writer.finish_event(text, exchange_, 78);
    take(text);
    return out;
  }

  MockOptions options_;
  std::vector<std::string> models_{R"(quo\"ted)"};
  Exchange exchange_;
};

TEST_F(MockReply, AChatEventHasExactlyTheseBytes) {
  exchange_.chunked = true;
  ReplyWriter writer(options_, models_);
  std::string out;
  writer.content_event(out, exchange_, {1, 1, 2}, 0);
  const std::string event =
      "data: {\"id\":\"chatcmpl-000000000000002a\",\"object\":\"chat.completion.chunk\","
      "\"created\":1700000000,\"model\":\"quo\\\"ted\",\"choices\":[{\"index\":0,\"delta\":"
      "{\"content\":\" tutti\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
  EXPECT_EQ(out, "cd\r\n" + event + "\r\n");
  EXPECT_EQ(event.size(), 0xcdU);
}

TEST_F(MockReply, FramingsEndLinesAsNamed) {
  ReplyWriter lf(options_, models_);
  std::string out;
  lf.done_event(out, exchange_);
  EXPECT_EQ(out, "data: [DONE]\n\n");
  options_.framing = Framing::kCrlf;
  out.clear();
  ReplyWriter(options_, models_).done_event(out, exchange_);
  EXPECT_EQ(out, "data: [DONE]\r\n\r\n");
  options_.framing = Framing::kCr;
  out.clear();
  ReplyWriter(options_, models_).error_event(out, exchange_, true);
  EXPECT_EQ(out.substr(0, 19), "event: error\rdata: ");
  EXPECT_EQ(out.substr(out.size() - 2), "\r\r");
}

TEST_F(MockReply, ThePiecesOfAStreamJoinToTheDocumentsText) {
  options_.text = TextKind::kWords;
  options_.tokens_per_chunk = 3;
  options_.reasoning_tokens = 4;
  exchange_.tokens = 11;
  exchange_.reasoning = 4;
  std::string content;
  std::string reasoning;
  const auto all = events();
  EXPECT_EQ(all.size(), 2U + 3U + 1U) << "an event never mixes reasoning and answer";
  for (const std::string& event : all) {
    const json delta = json::parse(event)["choices"][0]["delta"];
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
  }
  std::string out;
  exchange_.stream = false;
  ReplyWriter(options_, models_).document(out, exchange_);
  const json message = json::parse(out.substr(out.find("\r\n\r\n") + 4))["choices"][0]["message"];
  EXPECT_EQ(message["content"], content);
  EXPECT_EQ(message["reasoning_content"], reasoning);
  EXPECT_EQ(std::count(content.begin(), content.end(), ' '), 6);
  EXPECT_NE(content.front(), ' ');
}

TEST_F(MockReply, ToolCallPiecesJoinToValidArguments) {
  options_.tool_call = true;
  exchange_.echo = std::make_unique<EchoWords>(split_echo("say \"hi\\\" now"));
  std::string arguments;
  std::string name;
  const auto all = events();
  for (const std::string& event : all) {
    const json choice = json::parse(event)["choices"][0];
    if (choice["delta"].contains("tool_calls")) {
      const json function = choice["delta"]["tool_calls"][0]["function"];
      arguments += function["arguments"].get<std::string>();
      name += function.value("name", "");
    }
  }
  EXPECT_EQ(name, "write");
  EXPECT_EQ(json::parse(arguments)["text"], "say \"hi\\\" now");
  EXPECT_EQ(json::parse(all.back())["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(MockReply, UsageFollowsItsRule) {
  exchange_.prompt_tokens = 10;
  EXPECT_FALSE(json::parse(events()[0]).contains("usage"));
  exchange_.usage = UsageRule::kAsked;
  EXPECT_TRUE(json::parse(events()[0])["usage"].is_null());
  exchange_.usage = UsageRule::kFinal;
  EXPECT_FALSE(json::parse(events()[0]).contains("usage"));
  exchange_.usage = UsageRule::kContinuous;
  EXPECT_EQ(json::parse(events()[1])["usage"]["completion_tokens"], 2);
  ReplyWriter writer(options_, models_);
  std::string out;
  writer.usage_event(out, exchange_, 0);
  const json last = json::parse(out.substr(6));
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["total_tokens"], 13);
  exchange_.usage = UsageRule::kOff;
  out.clear();
  writer.usage_event(out, exchange_, 0);
  EXPECT_EQ(out, "");
}

TEST_F(MockReply, StampsAndFinishReasons) {
  options_.stamp = true;
  EXPECT_EQ(json::parse(events()[0])["tutti_sent_ns"], 77);
  EXPECT_EQ(json::parse(events().back())["choices"][0]["finish_reason"], "stop");
  exchange_.capped = true;
  EXPECT_EQ(json::parse(events().back())["choices"][0]["finish_reason"], "length");
}

TEST_F(MockReply, OnlyTheChosenEventIsMalformed) {
  exchange_.fault = {FaultKind::kMalformed, 2, 0};
  const auto all = events();
  EXPECT_TRUE(json::accept(all[0]));
  EXPECT_FALSE(json::accept(all[1]));
  EXPECT_TRUE(json::accept(all[2]));
}

TEST_F(MockReply, CompletionsUseTextAndTheirOwnObjectName) {
  exchange_.api = Api::kCompletions;
  const json event = json::parse(events()[0]);
  EXPECT_EQ(event["object"], "text_completion");
  EXPECT_EQ(event["choices"][0]["text"], "tutti");
  EXPECT_EQ(json::parse(events().back())["choices"][0]["finish_reason"], "stop");
}

TEST_F(MockReply, HeadsSayHowTheBodyEndsAndWhetherTheConnectionStays) {
  ReplyWriter writer(options_, models_);
  std::string out;
  exchange_.chunked = true;
  writer.stream_head(out, exchange_);
  EXPECT_THAT(out, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(out.find("Connection"), std::string::npos);
  out.clear();
  exchange_.chunked = false;
  exchange_.http11 = false;
  exchange_.keep_alive = false;
  writer.stream_head(out, exchange_);
  EXPECT_EQ(out.find("Transfer"), std::string::npos);
  out.clear();
  append_error(out, 429, "a \"b\"\n", true, false);
  EXPECT_THAT(out, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(out, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(json::parse(out.substr(out.find("\r\n\r\n") + 4))["error"]["message"], "a \"b\"\n");
}

TEST_F(MockReply, EchoSplitsAtAnyBlanksAndKeepsBytes) {
  const EchoWords words = split_echo("  caf\xc3\xa9\t\n\"x\"  ");
  EXPECT_EQ(words.escaped, "caf\xc3\xa9\\\"x\\\"");
  EXPECT_THAT(words.ends, testing::ElementsAre(5, 10));
  EXPECT_TRUE(split_echo(" \n").ends.empty());
}

TEST(MockFacts, PrometheusTextIsCumulativeAndPerPort) {
  Facts facts;
  facts.ports = {{8000, 3, 2, 9}, {8001, 1, 0, 4}};
  facts.faults[static_cast<std::size_t>(FaultKind::kStall)] = 5;
  facts.late.add(50'000);
  facts.late.add(2'000'000);
  facts.late.add(9'000'000'000);
  facts.late.add(-1);
  const std::string text = prometheus_text(facts);
  EXPECT_THAT(text, HasSubstr("tutti_mock_connections_open{port=\"8000\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tutti_mock_requests_total{port=\"8001\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("tutti_mock_faults_total{kind=\"stall\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("late_seconds_bucket{le=\"0.0001\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("late_seconds_bucket{le=\"0.005\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("late_seconds_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("late_max_seconds 9.0"));
  EXPECT_THAT(totals_line(facts), HasSubstr("5 with faults"));
}

}  // namespace
}  // namespace tutti::mock_llm
