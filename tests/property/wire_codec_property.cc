// Codec, for random messages: every field of every message survives the way there and back, and
// bytes that were damaged on purpose give a whole message or a reason.

#include <gtest/gtest.h>

#include "common/wire/codec.h"
#include "common/wire/data_codec.h"
#include "tests/property/wire_random.h"

namespace tutti::wire {
namespace {

constexpr std::size_t kKinds = std::variant_size_v<Message>;

TEST(WireCodecProperty, EveryFieldOfEveryMessageSurvives) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomMessages random(seed);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const Message message = random.message(kind);
      const Encoded encoded = encode(message);
      const auto back = decode(encoded.plane, encoded.bytes);
      ASSERT_TRUE(back.has_value())
          << name_of(message) << " seed " << seed << ": " << back.error().message;
      ASSERT_TRUE(*back == message) << name_of(message) << " seed " << seed;
    }
  }
}

TEST(WireCodecProperty, LeaseAndRecordsGoOnTheDataPlaneAllElseOnTheControlPlane) {
  RandomMessages random(1);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Message message = random.message(kind);
    const bool data =
        std::holds_alternative<Lease>(message) || std::holds_alternative<RecordBatch>(message);
    EXPECT_EQ(encode(message).plane, data ? Plane::kData : Plane::kControl) << name_of(message);
  }
}

TEST(WireCodecProperty, EveryTruncationIsRefused) {
  RandomMessages random(7);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Encoded encoded = encode(random.message(kind));
    if (encoded.plane != Plane::kData) {
      continue;  // Protobuf cut between two fields is a valid shorter message; the envelope has a
                 // length
    }
    for (std::size_t size = 0; size < encoded.bytes.size(); ++size) {
      EXPECT_FALSE(decode(encoded.plane, std::string_view(encoded.bytes).substr(0, size)));
    }
    EXPECT_FALSE(decode(encoded.plane, encoded.bytes + '\0')) << "something after the end";
  }
}

void damage(std::string& bytes, base::Mt19937& draw) {
  for (std::uint64_t i = 1 + draw.below(4); i-- > 0 && !bytes.empty();) {
    const auto at = static_cast<std::size_t>(draw.below(bytes.size()));
    switch (draw.below(3)) {
      case 0:
        bytes[at] = static_cast<char>(draw.below(256));
        break;
      case 1:
        bytes.erase(at, static_cast<std::size_t>(1 + draw.below(8)));
        break;
      default:
        bytes.insert(at, 1, static_cast<char>(draw.below(256)));
    }
  }
}

TEST(WireCodecProperty, DamagedBytesGiveAWholeMessageOrAReason) {
  std::size_t refused = 0;
  std::size_t taken = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomMessages random(seed);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      Encoded encoded = encode(random.message(kind));
      damage(encoded.bytes, random.draw());
      const auto back = decode(encoded.plane, encoded.bytes);
      if (!back) {
        ASSERT_FALSE(back.error().message.empty());
        ++refused;
        continue;
      }
      ++taken;
      const Encoded again = encode(*back);
      const auto twice = decode(again.plane, again.bytes);
      ASSERT_TRUE(twice.has_value()) << twice.error().message;
      ASSERT_EQ(encode(*twice).bytes, again.bytes) << name_of(*back) << " seed " << seed;
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(taken, 500u);
}

TEST(WireCodecProperty, TheSizeBoundOfARecordHolds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomMessages random(seed);
    RecordBatch batch;
    batch.number = seed;
    std::size_t bound = 1024;
    for (std::uint64_t i = random.draw().below(50); i-- > 0;) {
      batch.records.push_back(random.record());
      bound += record_bytes_max(batch.records.back());
      if (!batch.records.back().gaps.empty()) {
        batch.gaps.push_back({batch.records.back().phase, batch.records.back().gaps});
      }
    }
    EXPECT_LE(encode_records(batch).size(), bound);
  }
}

}  // namespace
}  // namespace tutti::wire
