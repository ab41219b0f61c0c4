// The bare client's answer scanner, against the answers of the mock's own writer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/bench/raw_reply.h"
#include "tests/mock_llm/reply.h"

namespace tutti::bench {
namespace {

TEST(RawReply, CountsEventsAndFindsTheEndWhateverTheCut) {
  mock_llm::MockOptions options;
  options.stamp = true;
  const std::vector<std::string> models{"m"};
  mock_llm::ReplyWriter writer(options, models);
  mock_llm::Exchange exchange;
  exchange.tokens = 3;
  exchange.chunked = true;
  std::string stream;
  writer.stream_head(stream, exchange);
  for (std::uint32_t i = 0; i < 3; ++i) {
    writer.content_event(stream, exchange, {i, 1, i + 1}, 100 + i);
  }
  writer.done_event(stream, exchange);
  writer.body_end(stream, exchange);
  std::string document;
  mock_llm::append_answer(document, {200, "application/json", "{\"x\":1}", true, true});
  std::string refusal;
  mock_llm::append_error(refusal, 503, "no", true, false);
  const std::string all = stream + document + refusal;

  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    ReplyScanner scanner;
    std::vector<std::int64_t> stamps;
    scanner.collect_stamps(&stamps);
    std::vector<std::uint64_t> events;
    std::vector<int> statuses;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      const std::string part = all.substr(at, piece);
      std::string_view rest = part;
      while (!rest.empty()) {
        rest.remove_prefix(scanner.feed(rest));
        ASSERT_FALSE(scanner.is_bad()) << piece;
        if (scanner.is_done()) {
          events.push_back(scanner.take_events());
          statuses.push_back(scanner.status());
          EXPECT_EQ(scanner.keeps_connection(), statuses.size() < 3);
          scanner.reset();
        }
      }
    }
    ASSERT_THAT(events, testing::ElementsAre(3, 0, 0)) << piece;
    ASSERT_THAT(statuses, testing::ElementsAre(200, 200, 503)) << piece;
    if (piece == all.size()) {
      EXPECT_THAT(stamps, testing::ElementsAre(100, 101, 102));
    }
  }
}

TEST(RawReply, AnAnswerWithoutALengthOrAStatusIsBad) {
  for (const char* text : {"HTTP/1.1 200 OK\r\n\r\n", "nonsense is no answer\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    ReplyScanner scanner;
    scanner.feed(text);
    EXPECT_TRUE(scanner.is_bad()) << text;
  }
}

}  // namespace
}  // namespace tutti::bench
