#include "common/text/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/random.h"

namespace tutti::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "type|data|comment" of every event.
struct Collected {
  std::vector<std::string> events;
  void operator()(const SseEvent& event) {
    events.push_back(std::string(event.type) + "|" +
                     (event.has_data ? std::string(event.data) : std::string("<none>")) + "|" +
                     std::string(event.comment));
  }
};

std::vector<std::string> parse_in_pieces(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  Collected collected;
  for (const std::string_view piece : pieces) {
    // A heap copy of the exact size: a view kept beyond the call is a sanitizer report.
    const std::vector<char> copy(piece.begin(), piece.end());
    EXPECT_TRUE(parser.feed(std::string_view(copy.data(), copy.size()), collected));
  }
  EXPECT_TRUE(parser.finish(collected));
  return collected.events;
}

std::vector<std::string> parse(std::string_view stream) { return parse_in_pieces({stream}); }

TEST(Sse, ReadsTwoEventsOfOneSegment) {
  EXPECT_THAT(parse("data: a\n\ndata: b\n\n"), ElementsAre("|a|", "|b|"));
}

TEST(Sse, AcceptsAllLineEndsAndTheirMix) {
  EXPECT_THAT(parse("data: a\r\n\r\ndata: b\r\n\r\n"), ElementsAre("|a|", "|b|"));
  EXPECT_THAT(parse("data: a\r\rdata: b\r\r"), ElementsAre("|a|", "|b|"));
  // A CRLF is one line end, not two: no blank line between the fields of an event.
  EXPECT_THAT(parse("event: e\r\ndata: a\r\ndata: b\r\n\r\n"), ElementsAre("e|a\nb|"));
  EXPECT_THAT(parse("event: e\rdata: a\rdata: b\r\r"), ElementsAre("e|a\nb|"));
  EXPECT_THAT(parse("data: a\r\n\ndata: b\n\r\n: ping\n\ndata: c\r\r\n"),
              ElementsAre("|a|", "|b|", "|c|"));
}

TEST(Sse, KeepsCrlfEventsBeforeAnLfComment) {  // T05
  EXPECT_THAT(parse("data: a\r\n\r\ndata: b\r\n\r\n: ping\n\n"), ElementsAre("|a|", "|b|"));
}

TEST(Sse, FollowsTheFieldRules) {  // T08
  EXPECT_THAT(parse("data:{\"x\":1}\nid: 7\nretry: 10\n\n"), ElementsAre("|{\"x\":1}|"));
  EXPECT_THAT(parse("\xEF\xBB\xBF"
                    "data: first\n\n"),
              ElementsAre("|first|"));
  EXPECT_THAT(parse("data: one\ndata: two\ndata:\n\n"), ElementsAre("|one\ntwo\n|"));
  EXPECT_THAT(parse("data:  two spaces\n\n"), ElementsAre("| two spaces|"));
  EXPECT_THAT(parse("data\n\n"), ElementsAre("||"));        // a field without colon
  EXPECT_THAT(parse("xdata: a\ndatax: b\n\n"), IsEmpty());  // other fields
  EXPECT_THAT(parse("data: a\n\xEF\xBB\xBF"
                    "data: b\n\n"),
              ElementsAre("|a|"));  // BOM only at 0
  EXPECT_THAT(parse("event: e\ndata: a\n\ndata: b\n\n"), ElementsAre("e|a|", "|b|"));
  EXPECT_THAT(parse(": c\n\n: d\n\n"), IsEmpty());
  EXPECT_THAT(parse("\n\n\n"), IsEmpty());
}

TEST(Sse, GivesTheCommentOfAnErrorEventWithoutData) {  // T23
  SseParser parser;
  std::size_t stale = 0;
  parser.feed("data: old\n\nevent: error\n\n",
              [&stale](const SseEvent& event) { stale = event.has_data ? 99 : event.data.size(); });
  EXPECT_EQ(stale, 0U);  // not the last event's data
  EXPECT_THAT(parse(": old\n\nevent: error\n: engine died\n: second\n\n"),
              ElementsAre("error|<none>|engine died"));
}

TEST(Sse, DeliversALastEventWithoutItsBlankLine) {
  EXPECT_THAT(parse("data: a\n\ndata: b"), ElementsAre("|a|", "|b|"));
  EXPECT_THAT(parse("data: a\n\ndata: b\n"), ElementsAre("|a|", "|b|"));
  EXPECT_THAT(parse("data: a\n\n: only a comment"), ElementsAre("|a|"));
}

const char* const kStreams[] = {
    "data: {\"t\":\"h\xC3\xA9\xF0\x9F\x98\x80\"}\n\ndata: [DONE]\n\n",
    "\xEF\xBB\xBF: hi\r\n\r\nevent: x\r\ndata: 1\r\ndata: 2\r\n\r\ndata:3\r\n\r\n",
    "data: a\r\rdata: b\rdata: c\r\r: ping\r\rdata: d",
    "data: a\n\r\ndata: b\r\n\ndata\n\nevent: error\n: why\n\nid: 1\ndata: z\n\n\n",
};

TEST(Sse, GivesTheSameEventsForEverySplit) {  // T02, T03, T-13
  for (const std::string_view stream : kStreams) {
    const std::vector<std::string> whole = parse(stream);
    ASSERT_FALSE(whole.empty());
    for (std::size_t i = 0; i <= stream.size(); ++i) {
      EXPECT_EQ(parse_in_pieces({stream.substr(0, i), stream.substr(i)}), whole) << i;
      for (std::size_t j = i; j <= stream.size(); ++j) {
        ASSERT_EQ(parse_in_pieces({stream.substr(0, i), stream.substr(i, j - i), stream.substr(j)}),
                  whole)
            << i << ' ' << j;
      }
    }
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      bytes.push_back(stream.substr(i, 1));
    }
    EXPECT_EQ(parse_in_pieces(bytes), whole);
  }
}

TEST(Sse, DoesNotCopyAnEventThatLiesWholeInTheBytes) {
  const std::string stream = "data: first\n\ndata: second\r\n\r\n";
  SseParser parser;
  int inside = 0;
  parser.feed(stream, [&](const SseEvent& event) {
    inside +=
        event.data.data() >= stream.data() && event.data.data() < stream.data() + stream.size() ? 1
                                                                                                : 0;
  });
  EXPECT_EQ(inside, 2);
}

TEST(Sse, DeliversAnEventWithTheSegmentThatCompletesIt) {
  SseParser parser;
  Collected collected;
  parser.feed("data: a\n", collected);
  EXPECT_THAT(collected.events, IsEmpty());
  parser.feed("\n", collected);
  EXPECT_THAT(collected.events, ElementsAre("|a|"));
  // With CRLF the event is complete at the CR; the LF that follows is not a second blank line.
  parser.feed("data: b\r\n\r", collected);
  EXPECT_THAT(collected.events, ElementsAre("|a|", "|b|"));
  parser.feed("\ndata: c\n\n", collected);
  EXPECT_THAT(collected.events, ElementsAre("|a|", "|b|", "|c|"));
}

TEST(Sse, ReadsALargeEventAndRefusesATooLargeOne) {  // T-32
  const std::string large = "data: " + std::string(5 << 20, 'x') + "\n\n";
  SseParser parser;
  std::size_t size = 0;
  const auto sink = [&size](const SseEvent& event) { size = event.data.size(); };
  for (std::size_t at = 0; at < large.size(); at += 16384) {
    ASSERT_TRUE(parser.feed(std::string_view(large).substr(at, 16384), sink));
  }
  EXPECT_EQ(size, std::size_t{5} << 20);

  SseParser small(100);
  const std::string fits = "data: " + std::string(90, 'x') + "\n\n";
  const std::string too_large = "data: " + std::string(101, 'x') + "\n\n";
  EXPECT_TRUE(small.feed(fits, sink));
  EXPECT_FALSE(small.feed(too_large, sink));
  EXPECT_TRUE(small.too_large());
  EXPECT_EQ(size, 90U);
  EXPECT_FALSE(small.feed(fits, sink));  // dead until reset
  small.reset();
  EXPECT_TRUE(small.feed(fits, sink));
  const std::string two = "data: " + std::string(60, 'x') + "\n";
  EXPECT_FALSE(small.feed(two + two, sink));
  small.reset();
  EXPECT_FALSE(small.feed(std::string(165, ':'), sink));  // an endless comment, too
  small.reset();
  // The line that breaks the limit ends no event, also when it came in two pieces.
  size = 7;
  EXPECT_TRUE(small.feed("data: kept back\n" + std::string(100, 'x'), sink));
  EXPECT_FALSE(small.feed(std::string(100, 'x') + "\n", sink));
  EXPECT_EQ(size, 7U);
  small.reset();
  bool fed = true;
  for (int i = 0; i < 40 && fed; ++i) {
    fed = small.feed("xxxxx", sink);
  }
  EXPECT_FALSE(fed);
}

TEST(Sse, StartsCleanAfterReset) {
  SseParser parser;
  Collected collected;
  parser.feed("event: old\ndata: left over\ndata: half\r", collected);
  parser.reset();
  parser.feed(
      "\xEF\xBB\xBF"
      "data: new\n\n",
      collected);
  EXPECT_THAT(collected.events, ElementsAre("|new|"));
}

// Random streams of all line ends and odd lines, fed in random pieces.
TEST(Sse, GivesTheSameEventsForRandomStreamsAndPieces) {
  const std::vector<std::string> parts{
      "\n", "\r", "\r\n",  "data: x",          "data:",    ": c", "event: e",    "data",
      "y",  " ",  "id: 1", "\xF0\x9F\x98\x80", "data: {}", ":",   "\xEF\xBB\xBF"};
  base::Mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string stream;
    const std::uint64_t n = 1 + random.below(25);
    for (std::uint64_t i = 0; i < n; ++i) {
      stream += parts[random.below(parts.size())];
    }
    const std::vector<std::string> whole = parse(stream);
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = random.below(5);  // 0 happens
      pieces.push_back(std::string_view(stream).substr(at, size));
      at += size;
    }
    ASSERT_EQ(parse_in_pieces(pieces), whole) << testing::PrintToString(stream);
  }
}

}  // namespace
}  // namespace tutti::text
