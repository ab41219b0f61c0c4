// The framing of replies: what is read, what is tolerated, what is refused and with which words.

#include "agent/target/http_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tutti::target {
namespace {

using testing::HasSubstr;
using Found = HttpReader::Found;
using Ending = HttpReader::Ending;

struct Read {
  int status = 0;
  std::string type;
  std::string body;
  std::string left;  // after the reply
  std::string problem;
  std::uint64_t header_bytes = 0;
  bool whole = false;
  bool keeps_alive = false;
  Ending ending = Ending::kBad;

  friend bool operator==(const Read&, const Read&) = default;
};

Read read_in_pieces(std::string_view bytes, std::size_t piece, HttpLimits limits = {},
                    KnownHead* known = nullptr) {
  HttpReader reader(limits, known);
  reader.start();
  Read read;
  bool over = false;
  for (std::size_t at = 0; at < bytes.size() && !over; at += piece) {
    const std::string part(bytes.substr(at, piece));  // its own memory: stale views show
    std::string_view rest = part;
    for (bool going = true; going;) {
      std::string_view body;
      switch (reader.next(rest, body)) {
        case Found::kMore:
          EXPECT_TRUE(rest.empty());
          going = false;
          break;
        case Found::kHead:
          EXPECT_EQ(read.status, 0) << "told twice";
          read.status = reader.status();
          read.type = reader.content_type();
          break;
        case Found::kBody:
          EXPECT_FALSE(body.empty());
          EXPECT_GE(body.data(), part.data());  // not a copy
          EXPECT_LE(body.data() + body.size(), part.data() + part.size());
          read.body += body;
          break;
        case Found::kDone:
          read.whole = true;
          read.left =
              std::string(rest) + std::string(bytes.substr(std::min(at + piece, bytes.size())));
          over = true;
          going = false;
          break;
        case Found::kBad:
          over = true;
          going = false;
          break;
      }
    }
  }
  read.keeps_alive = reader.keeps_alive();
  read.problem = reader.problem();
  read.header_bytes = reader.header_bytes();
  read.ending = reader.finish();
  return read;
}

// The same whatever the cut, and whatever was learnt from the reply before.
Read read_all(const std::string& bytes, HttpLimits limits = {}) {
  Read whole = read_in_pieces(bytes, bytes.size() + 1, limits);
  KnownHead known;
  EXPECT_EQ(read_in_pieces(bytes, bytes.size() + 1, limits, &known), whole) << "learning";
  EXPECT_EQ(read_in_pieces(bytes, bytes.size() + 1, limits, &known), whole) << "having learnt";
  for (std::size_t piece = 1; piece < bytes.size(); piece += piece < 8 ? 1 : 7) {
    EXPECT_EQ(read_in_pieces(bytes, piece, limits), whole) << "in pieces of " << piece;
    EXPECT_EQ(read_in_pieces(bytes, piece, limits, &known), whole) << "in pieces of " << piece;
  }
  return whole;
}

const std::string kChunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(HttpReader, ACountedBodyEndsByItsCountAndKeepsTheConnection) {
  const Read read = read_all(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: "
      "5\r\n\r\n"
      "helloHTTP/1.1");
  EXPECT_TRUE(read.whole);
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.type, "application/json; charset=utf-8");
  EXPECT_EQ(read.body, "hello");
  EXPECT_EQ(read.left, "HTTP/1.1");
  EXPECT_TRUE(read.keeps_alive);
  EXPECT_EQ(read.header_bytes, 17U + 47U + 19U + 2U);
}

TEST(HttpReader, ChunksWithExtensionsAndTrailersAreOneBody) {
  const Read read = read_all(kChunkedHead +
                             "5;name=value\r\nhello\r\n1 ; q=\"a;b\"\r\n,\r\n00A\r\n 123456789\r\n"
                             "0;last\r\nX-Sum: 1\r\nContent-Length: 99\r\n\r\nnext");
  EXPECT_TRUE(read.whole);
  EXPECT_EQ(read.body, "hello, 123456789");
  EXPECT_EQ(read.left, "next");
  EXPECT_TRUE(read.keeps_alive);
}

TEST(HttpReader, ChunkDataMayHoldLineEndsAndLookLikeFraming) {
  const std::string data = "0\r\n\r\nHTTP/1.1 500\r\n\r\n\n\n";
  const Read read = read_all(kChunkedHead + "17\r\n" + data + "\r\n0\r\n\r\n");
  EXPECT_TRUE(read.whole) << read.problem;
  EXPECT_EQ(read.body, data);
}

TEST(HttpReader, BareLineFeedsAreLineEnds) {
  const Read read = read_all(
      "HTTP/1.1 200 OK\nContent-Type:text/plain\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n");
  EXPECT_TRUE(read.whole) << read.problem;
  EXPECT_EQ(read.body, "abc");
  EXPECT_EQ(read.type, "text/plain");
}

TEST(HttpReader, WithoutALengthTheCloseIsTheEnd) {
  const Read read = read_all("HTTP/1.1 200 OK\r\n\r\nsome text");
  EXPECT_FALSE(read.whole);
  EXPECT_EQ(read.body, "some text");
  EXPECT_EQ(read.ending, Ending::kWhole);
  EXPECT_FALSE(read.keeps_alive);
}

TEST(HttpReader, InterimRepliesAreSkippedWithTheirFields) {
  const Read read = read_all(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\n"
      "Connection: close\r\nContent-Type: text/html\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_TRUE(read.whole) << read.problem;
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.type, "");
  EXPECT_EQ(read.body, "x");
  EXPECT_TRUE(read.keeps_alive);
}

TEST(HttpReader, RepliesThatHaveNoBodyEndWithTheirHeader) {
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    const Read read =
        read_all(std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 12\r\n\r\nrest");
    EXPECT_TRUE(read.whole);
    EXPECT_EQ(read.left, "rest");
    EXPECT_TRUE(read.keeps_alive);
  }
  const Read empty = read_all("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(empty.whole);
  const Read switched = read_all("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  EXPECT_TRUE(switched.whole);
  EXPECT_EQ(switched.status, 101);
  EXPECT_FALSE(switched.keeps_alive);
}

TEST(HttpReader, TheConnectionIsKeptAsVersionAndFieldSay) {
  const auto keeps = [](const std::string& version, const std::string& field) {
    return read_all(version + " 200 OK\r\n" + field + "Content-Length: 0\r\n\r\n").keeps_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", ""));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: close\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "CONNECTION: foo, Close , bar\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.1", "Connection: closed\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", ""));
  EXPECT_TRUE(keeps("HTTP/1.0", "connection: Keep-Alive\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", "connection: keep-alive, close\r\n"));
}

TEST(HttpReader, ChunksCountMoreThanALengthButTheConnectionIsNotTrusted) {
  const Read read = read_all(
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
      "Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
  EXPECT_TRUE(read.whole);
  EXPECT_EQ(read.body, "ab");
  EXPECT_FALSE(read.keeps_alive);
}

TEST(HttpReader, AFoldedLineOfAFieldWeDoNotReadIsTolerated) {
  const Read read =
      read_all("HTTP/1.1 200 OK\r\nX-Long: a\r\n\t b\r\n c\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_TRUE(read.whole) << read.problem;
}

struct Refusal {
  const char* bytes;
  const char* says;
};

TEST(HttpReader, WhatIsRefusedIsNamed) {
  const Refusal refusals[] = {
      {"SSH-2.0-OpenSSH\r\n", "byte 0 of the reply is 0x53"},
      {"HTTP/2 200\r\n\r\n", "byte 5 of the reply is 0x32"},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", "byte 0 of the reply is 0x0d"},
      {"HTTP/1.\r\n", "not \"HTTP/1.x NNN reason\""},
      {"HTTP/1.1 20 OK\r\n\r\n", "\"HTTP/1.1 20 OK\""},
      {"HTTP/1.1 2000\r\n\r\n", "\"HTTP/1.1 2000\""},
      {"HTTP/1.1 099 No\r\n\r\n", "status 99"},
      {"HTTP/1.x 200 OK\r\n\r\n", "status line"},
      {"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n", "\"No colon here\" is not \"name: value\""},
      {"HTTP/1.1 200 OK\r\n: x\r\n\r\n", "name: value"},
      {"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", "name: value"},
      {"HTTP/1.1 200 OK\r\n folded\r\n\r\n", "follows no field"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n", "decides the framing"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length \"-1\""},
      {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "Content-Length \"+1\""},
      {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "Content-Length \"\""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", "Content-Length \"1, 1\""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "is not a length"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "two Content-Length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "\"gzip, chunked\""},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
       "Transfer-Encoding"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "\"zz\" is not a chunk size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "\"\" is not a chunk size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 5\r\n",
       "\"5 5\" is not a chunk size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n", "too large"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
       "0x62 where a chunk's line end should be"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\r\n",
       "0x0d where a chunk's line end should be"},
  };
  for (const auto& refusal : refusals) {
    const Read read = read_all(refusal.bytes);
    EXPECT_FALSE(read.whole) << refusal.bytes;
    EXPECT_THAT(read.problem, HasSubstr(refusal.says)) << refusal.bytes;
    EXPECT_EQ(read.ending, Ending::kBad);
  }
}

TEST(HttpReader, LinesAndHeadsHaveLimitsAndTheLastByteBeforeThemIsFine) {
  HttpLimits limits;
  limits.line_bytes_max = 32;
  limits.head_bytes_max = 64;
  limits.chunk_line_bytes_max = 8;
  const auto head = [](std::size_t padding) {
    return "HTTP/1.1 200 OK\r\nX: " + std::string(padding, 'x') + "\r\nContent-Length: 0\r\n\r\n";
  };
  // 31 bytes and CR; 16 + 28 + 18 + 1 of the head's 64.
  EXPECT_TRUE(read_all(head(24), limits).whole);
  EXPECT_TRUE(read_all(head(25), limits).whole);
  EXPECT_THAT(read_all(head(26), limits).problem, HasSubstr("header is larger than 64 bytes"));
  EXPECT_THAT(read_all(head(29), limits).problem, HasSubstr("header line is longer than 32 bytes"));
  EXPECT_THAT(read_all(std::string("HTTP/1.1 200 ") + std::string(40, 'x'), limits).problem,
              HasSubstr("longer than 32"));
  EXPECT_TRUE(
      read_all("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1;23456\r\na\r\n0\n\n", limits)
          .whole);
  EXPECT_THAT(
      read_all("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1;234567\r\na\r\n0\n\n", limits)
          .problem,
      HasSubstr("chunk's size line is longer than 8"));
  // Trailers and interim heads count too.
  std::string trailers = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\n";
  for (int i = 0; i < 8; ++i) {
    trailers += "T: abcdef\n";
  }
  EXPECT_THAT(read_all(trailers + "\n", limits).problem, HasSubstr("header is larger"));
  std::string interim;
  for (int i = 0; i < 8; ++i) {
    interim += "HTTP/1.1 100 C\n\n";
  }
  EXPECT_THAT(read_all(interim + head(1), limits).problem, HasSubstr("header is larger"));
}

TEST(HttpReader, AnEarlyEndSaysWhereItCame) {
  EXPECT_EQ(read_all("").ending, Ending::kNothing);
  EXPECT_EQ(read_all("HT").ending, Ending::kCutHead);
  EXPECT_EQ(read_all("HTTP/1.1 200 OK\r\nContent-").ending, Ending::kCutHead);
  EXPECT_EQ(read_all("HTTP/1.1 100 Continue\r\n\r\n").ending, Ending::kCutHead);
  EXPECT_EQ(read_all("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").ending, Ending::kCutBody);
  EXPECT_EQ(read_all("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n").ending, Ending::kCutBody);
  for (const char* cut :
       {"", "5", "5\r\n", "5\r\nab", "5\r\nhello", "5\r\nhello\r\n", "0\r\n", "0\r\nX: 1\r\n"}) {
    EXPECT_EQ(read_all(kChunkedHead + cut).ending, Ending::kCutBody) << cut;
  }
}

TEST(HttpReader, ItIsReadyForTheNextReplyAfterAnyEnd) {
  HttpReader reader;
  for (const char* bytes : {"junk", "HTTP/1.1 200 OK\r\nContent-Le",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r",
                            "HTTP/1.1 200 OK\r\n\r\nuntil close"}) {
    reader.start();
    std::string_view rest = bytes;
    std::string_view body;
    for (Found found = Found::kHead; found != Found::kMore && found != Found::kBad;) {
      found = reader.next(rest, body);
    }
    reader.start();
    rest = "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok";
    EXPECT_EQ(reader.next(rest, body), Found::kHead) << bytes << ": " << reader.problem();
    EXPECT_EQ(reader.status(), 201);
    EXPECT_EQ(reader.next(rest, body), Found::kBody);
    EXPECT_EQ(body, "ok");
    EXPECT_EQ(reader.next(rest, body), Found::kDone);
    EXPECT_TRUE(reader.keeps_alive());
    EXPECT_EQ(reader.problem(), "");
  }
}

// ---- the header of the reply before

std::string reply_of(std::string_view date, std::string_view length, std::string_view body) {
  return "HTTP/1.1 200 OK\r\nDate: " + std::string(date) +
         "\r\nContent-Length: " + std::string(length) + "\r\nServer: s\r\n\r\n" + std::string(body);
}

// What a reader with `known` says of `bytes` is what one without says. True: the header was known.
bool agrees(const std::string& bytes, KnownHead& known) {
  KnownHead copy = known;
  const bool hit = copy.match(bytes) > 0;
  EXPECT_EQ(read_in_pieces(bytes, bytes.size() + 1, {}, &known),
            read_in_pieces(bytes, bytes.size() + 1))
      << bytes;
  return hit;
}

TEST(KnownHead, AnotherLengthIsTheSameHeaderAndAnotherDateIsLearnt) {
  KnownHead known;
  EXPECT_FALSE(agrees(reply_of("1", "5", "hello"), known));
  EXPECT_TRUE(agrees(reply_of("1", "5", "hello"), known));
  EXPECT_TRUE(agrees(reply_of("1", "12", "hello, world and more"), known));
  EXPECT_TRUE(agrees(reply_of("1", "0", ""), known));
  EXPECT_TRUE(agrees(reply_of("1", "007", "1234567"), known));
  EXPECT_FALSE(agrees(reply_of("2", "5", "hello"), known));
  EXPECT_TRUE(agrees(reply_of("2", "6", "hello!"), known));
}

TEST(KnownHead, WhatIsNoLengthIsReadByTheLine) {
  for (const char* length : {"", "5x", "-5", "+5", " 5", "5 ", "5, 5", "9223372036854775807",
                             "9223372036854775808", "1000000000000000000", "5\r\nContent-Length: 6",
                             "5\r\nContent-Length: 5", "5\r\nTransfer-Encoding: chunked"}) {
    KnownHead known;
    agrees(reply_of("1", "5", "hello"), known);
    agrees(reply_of("1", length, "hello"), known);
    agrees(reply_of("1", length, "hello"), known);  // the odd one may have been learnt
    agrees(reply_of("1", "4", "hello"), known);
  }
}

TEST(KnownHead, HeadersWithoutALengthAreKnownToo) {
  for (const std::string head : {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                 "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
                                 "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.0 200 OK\n\n"}) {
    KnownHead known;
    EXPECT_FALSE(agrees(head + "3\r\nabc\r\n0\r\n\r\n", known));
    EXPECT_TRUE(agrees(head + "4\r\nabcd\r\n0\r\nX: y\r\n\r\n", known));
  }
}

TEST(KnownHead, InterimRepliesAndFoldedLinesReadAsEver) {
  for (const std::string head :
       {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nContent-Length: 2\r\n\r\n"}) {
    KnownHead known;
    agrees(head + "ok", known);
    agrees(head + "ok", known);
  }
}

// The limits count what a known header takes as they count its lines.
TEST(KnownHead, TheLimitsHoldBehindAKnownHeader) {
  const HttpLimits limits{std::size_t{9} << 10, std::size_t{10} << 10, 64};
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  for (std::size_t more = 1000; more < 1400; ++more) {
    const std::string bytes =
        head + "A: " + std::string(8900, 'a') + "\r\nB: " + std::string(more, 'b') + "\r\n\r\n";
    KnownHead known;
    read_in_pieces(bytes, bytes.size(), limits, &known);
    ASSERT_EQ(read_in_pieces(bytes, bytes.size(), limits, &known),
              read_in_pieces(bytes, bytes.size(), limits))
        << more;
  }
}

}  // namespace
}  // namespace tutti::target
