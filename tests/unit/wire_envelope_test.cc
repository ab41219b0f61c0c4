// Envelope: the bytes are as documented, and everything else is refused with the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/wire/envelope.h"
#include "common/wire/messages.h"

namespace tutti::wire {
namespace {

using testing::HasSubstr;

Frame frame() {
  return Frame{
      {0x0102030405060708, 0x1112131415161718}, {0x21, 0x31}, 0x41, 0x51, Plane::kData, "hey"};
}

std::string refusal(const std::string& bytes) {
  const auto decoded = decode_envelope(bytes);
  return decoded ? "taken" : decoded.error().message;
}

std::string with(std::size_t at, char value) {
  std::string bytes = encode_envelope(frame());
  bytes[at] = value;
  return bytes;
}

TEST(WireEnvelope, HasTheDocumentedBytes) {
  const std::string bytes = encode_envelope(frame());
  ASSERT_EQ(bytes.size(), kEnvelopeHeaderBytes + 3);
  EXPECT_EQ(bytes.substr(0, 4), "tutt");
  EXPECT_EQ(bytes.substr(4, 4), std::string("\x02\x00\x02\x00", 4));
  EXPECT_EQ(bytes.substr(8, 8), "\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(bytes.substr(16, 8), "\x18\x17\x16\x15\x14\x13\x12\x11");
  EXPECT_EQ(bytes[24], 0x21);
  EXPECT_EQ(bytes[32], 0x31);
  EXPECT_EQ(bytes[40], 0x41);
  EXPECT_EQ(bytes[48], 0x51);
  EXPECT_EQ(bytes.substr(56), std::string("\x03\x00\x00\x00hey", 7));
  EXPECT_EQ(decode_envelope(bytes).value(), frame());
}

TEST(WireEnvelope, NamesTheOtherVersion) {
  EXPECT_THAT(refusal(with(4, 9)), HasSubstr("protocol version 9, this side 2"));
  EXPECT_THAT(refusal(with(4, 9).substr(0, 6)), HasSubstr("protocol version 9"))
      << "whatever else its header looks like";
  EXPECT_EQ(foreign_version(with(4, 9).substr(0, 6)), std::uint16_t{9});
  EXPECT_EQ(foreign_version(encode_envelope(frame())), std::nullopt);
  EXPECT_EQ(foreign_version("GET / HTTP/1.1"), std::nullopt);
  EXPECT_EQ(foreign_version("tutt"), std::nullopt);
}

TEST(WireEnvelope, RefusesGarbageWithTheReason) {
  EXPECT_THAT(refusal(""), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal("GET / HTTP/1.1\r\n\r\n"), HasSubstr("do not begin"));
  EXPECT_THAT(refusal(encode_envelope(frame()).substr(0, 59)),
              HasSubstr("shorter than the header"));
  EXPECT_THAT(refusal(with(6, 0)), HasSubstr("plane 0"));
  EXPECT_THAT(refusal(with(6, 3)), HasSubstr("plane 3"));
  EXPECT_THAT(refusal(with(7, 1)), HasSubstr("reserved"));
  EXPECT_THAT(refusal(with(56, 4)), HasSubstr("announces 4 payload bytes, 3 came"));
  EXPECT_THAT(refusal(with(59, 0x7F)), HasSubstr("more than 67108864"));
  EXPECT_THAT(refusal(encode_envelope(frame()) + "x"), HasSubstr("3 payload bytes, 4 came"));
  Frame odd = frame();
  odd.number = 0;
  EXPECT_THAT(refusal(encode_envelope(odd)), HasSubstr("without a number"));
  odd = frame();
  odd.from = {};
  EXPECT_THAT(refusal(encode_envelope(odd)), HasSubstr("no sender"));
}

TEST(WireEnvelope, AnotherVersionIsToldOncePerConnectionAndNotWithoutEnd) {
  VersionReplies replies;
  std::string old = encode_envelope(frame());
  EXPECT_FALSE(replies.owed(old, "a")) << "it is of our version";
  EXPECT_FALSE(replies.owed("GET / HTTP/1.1", "a")) << "it is of none";
  old[4] = static_cast<char>(kProtocolVersion + 1);
  EXPECT_TRUE(replies.owed(old, "a"));
  EXPECT_FALSE(replies.owed(old, "a")) << "or two sides would answer each other for ever";
  std::size_t told = 1;
  for (std::size_t i = 0; i < 2 * VersionReplies::kMax; ++i) {
    told += replies.owed(old, std::to_string(i)) ? 1U : 0U;
  }
  EXPECT_EQ(told, VersionReplies::kMax);
}

}  // namespace
}  // namespace tutti::wire
