// Codec: what hostile or foreign bytes get, and how small an ordinary batch is. Round trips of
// every field are in tests/property/wire_codec_property.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <msgpack.hpp>

#include "common/wire/codec.h"
#include "common/wire/data_codec.h"
#include "tests/property/wire_random.h"
#include "tutti/v1/control.pb.h"

namespace tutti::wire {
namespace {

using testing::HasSubstr;

std::string refusal(Plane plane, const std::string& bytes) {
  const auto decoded = decode(plane, bytes);
  return decoded ? "taken" : decoded.error().message;
}

// A batch of three alike records, element by element, to be spoilt.
constexpr std::size_t kElements = 4 + 38;
constexpr std::size_t kChunkCounts = 4 + 27;
constexpr std::size_t kGaps = 4 + 29;
constexpr std::size_t kTokens = 4 + 30;
template <class F>
std::string batch_with(std::size_t element, F write, std::int64_t rows = 3) {
  msgpack::sbuffer out;
  msgpack::packer<msgpack::sbuffer> packer(out);
  packer.pack_array(kElements);
  const std::array<std::int64_t, 4> head = {kDataVersion, 1, 7, rows};
  for (std::size_t i = 0; i < kElements; ++i) {
    if (i == element) {
      write(packer);
    } else if (i < head.size()) {
      packer.pack(head[i]);
    } else if (i > kChunkCounts) {
      packer.pack_nil();  // chunk steps, gaps, counts and texts
    } else {
      packer.pack(i == kChunkCounts ? 0 : 1);
    }
  }
  return {out.data(), out.size()};
}

std::string number(std::size_t element, std::int64_t value) {
  return batch_with(element, [&](auto& packer) { packer.pack(value); });
}

TEST(WireCodec, AConstantColumnIsOneValueForAllRows) {
  const auto whole = decode(Plane::kData, number(4, 1));
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  const auto& batch = std::get<RecordBatch>(*whole);
  ASSERT_EQ(batch.records.size(), 3u);
  EXPECT_EQ(batch.number, 7u);
  EXPECT_EQ(batch.records[2].seq, 3u) << "a step of 1 in every row";
  EXPECT_EQ(batch.records[2].phase, 1u);
}

TEST(WireCodec, HostileBatchesAreRefusedByColumn) {
  EXPECT_THAT(refusal(Plane::kData, number(0, 1)), HasSubstr("version 1"));
  EXPECT_THAT(refusal(Plane::kData, number(1, 3)), HasSubstr("unknown kind 3"));
  EXPECT_THAT(refusal(Plane::kData, number(1, 2)), HasSubstr("42 fields, not 9"));
  EXPECT_THAT(refusal(Plane::kData, number(3, -1)), HasSubstr("-1 rows"));
  EXPECT_THAT(refusal(Plane::kData, number(3, 1'000'000'000'000)), HasSubstr("more than 65536"));
  EXPECT_THAT(refusal(Plane::kData, number(6, 65'536)), HasSubstr("phase: row 0: 65536"));
  EXPECT_THAT(refusal(Plane::kData, number(6, -1)), HasSubstr("phase: row 0: -1"));
  EXPECT_THAT(refusal(Plane::kData, number(9, 3)), HasSubstr("outcome: row 0: 3"));
  EXPECT_THAT(refusal(Plane::kData, number(10, 15)), HasSubstr("failure: row 0: 15"));
  EXPECT_THAT(refusal(Plane::kData, number(11, 7)), HasSubstr("finish_reason: row 0: 7"));
  EXPECT_THAT(refusal(Plane::kData, number(13, 64)), HasSubstr("flags: row 0: 64"));
  EXPECT_THAT(refusal(Plane::kData, number(kChunkCounts, INT64_MAX)), HasSubstr("chunk_counts"));
  EXPECT_THAT(refusal(Plane::kData, number(kChunkCounts, 30)), HasSubstr("chunk_counts: row 1: 30"))
      << "two rows of 30 steps do not fit in what came";
}

TEST(WireCodec, ForeignTypesAreRefusedByColumn) {
  const auto spoilt = [](std::size_t element, auto write) {
    return refusal(Plane::kData, batch_with(element, write));
  };
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack_nil(); }), HasSubstr("sample: row 0 is empty"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack(true); }), HasSubstr("sample: a boolean"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack(1.5); }), HasSubstr("sample: a float"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack(std::string("x")); }), HasSubstr("not bin"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack(UINT64_MAX); }), HasSubstr("out of range"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack_map(0); }), HasSubstr("a map"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack_bin(0); }), HasSubstr("a text where none belongs"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack_array(2).pack(1).pack(1); }),
              HasSubstr("2 cells for 3"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack_array(UINT32_MAX); }), HasSubstr("cells for 3"));
  EXPECT_THAT(spoilt(5, [](auto& p) { p.pack_array(3).pack_array(0); }), HasSubstr("an array"));
  EXPECT_THAT(spoilt(3, [](auto& p) { p.pack_array(0); }), HasSubstr("an array"));
  EXPECT_THAT(spoilt(35, [](auto& p) { p.pack(3); }), HasSubstr("error_message: an integer"));
  EXPECT_THAT(spoilt(35, [](auto& p) { p.pack_bin(1).pack_bin_body("x", 1); }),
              HasSubstr("one text for all rows"));
  EXPECT_THAT(refusal(Plane::kData, "\xc0"), HasSubstr("an integer where none belongs"));
  EXPECT_THAT(refusal(Plane::kData, ""), HasSubstr("refused"));
  EXPECT_THAT(refusal(Plane::kData, std::string(100'000, '\x91')), HasSubstr("refused"))
      << "a deep nest";
}

TEST(WireCodec, HostileGapsAreRefused) {
  const auto gaps = [](const std::vector<std::int64_t>& values) {
    const auto write = [&](auto& packer) { packer.pack(values); };
    return refusal(Plane::kData, batch_with(kGaps, write));
  };
  EXPECT_EQ(gaps({}), "taken");
  EXPECT_EQ(gaps({1, 2, 5, 1, 3, 1}), "taken");
  EXPECT_THAT(gaps({1}), HasSubstr("gaps: no phase with its cells"));
  EXPECT_THAT(gaps({65'536, 0}), HasSubstr("gaps: no phase"));
  EXPECT_THAT(gaps({1, 1'000'000'000}), HasSubstr("gaps: no phase")) << "more cells than bytes";
  EXPECT_THAT(gaps({1, 2, 5, 1, 3}), HasSubstr("gaps: no phase"));
  EXPECT_THAT(gaps({1, 1, -1, 1}), HasSubstr("gaps: no cell"));
  EXPECT_THAT(gaps({1, 1, 65'536, 1}), HasSubstr("gaps: no cell"));
  EXPECT_THAT(gaps({1, 1, 5, -1}), HasSubstr("gaps: no cell"));
  EXPECT_THAT(gaps({1, 1, 5, std::int64_t{1} << 32}), HasSubstr("gaps: no cell"));
  EXPECT_THAT(refusal(Plane::kData, number(kGaps, 3)), HasSubstr("gaps: not an array"));
  const auto none = [](auto& packer) { packer.pack_array(2).pack(1).pack_nil(); };
  EXPECT_THAT(refusal(Plane::kData, batch_with(kGaps, none)), HasSubstr("gaps: no phase"));
}

TEST(WireCodec, HostileCountsOfTokensAreRefused) {
  const auto tokens = [](const std::vector<std::int64_t>& values) {
    const auto write = [&](auto& packer) { packer.pack(values); };
    return refusal(Plane::kData, batch_with(kTokens, write));
  };
  EXPECT_EQ(tokens({}), "taken");
  EXPECT_EQ(tokens({1, 9, 40, 39, 0, 1, -2, 7, -1, 1}), "taken");
  EXPECT_THAT(tokens({1, 9, 40, 39}), HasSubstr("tokens: 4 numbers of counts"));
  EXPECT_THAT(tokens({65'536, 9, 40, 39, 0}), HasSubstr("tokens: count 0"));
  EXPECT_THAT(tokens({1, 9, std::int64_t{1} << 31, 39, 0}), HasSubstr("tokens: count 0"));
  EXPECT_THAT(tokens({1, 9, 40, 39, 0, 1, 9, 40, 39, 2}), HasSubstr("tokens: count 1"));
  EXPECT_THAT(refusal(Plane::kData, number(kTokens, 3)), HasSubstr("tokens: not an array"));
  const auto none = [](auto& packer) {
    packer.pack_array(5).pack(1).pack_nil().pack(1).pack(1).pack(0);
  };
  EXPECT_THAT(refusal(Plane::kData, batch_with(kTokens, none)), HasSubstr("tokens: count 0"));
  const auto too_many = [](auto& packer) { packer.pack_array(UINT32_MAX); };
  EXPECT_THAT(refusal(Plane::kData, batch_with(kTokens, too_many)), HasSubstr("numbers of counts"));
}

TEST(WireCodec, CountsOfTokensTravelWithoutARecord) {
  RecordBatch batch;
  batch.number = 9;
  batch.tokens = {{1, 100, 40, 39, false}, {0, 7, 0, -1, true}};
  const auto encoded = encode(Message(batch));
  const auto back = decode(encoded.plane, encoded.bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(std::get<RecordBatch>(*back), batch);
}

// A lease of two commands with `write` in place of the column of conversations.
template <class Write>
std::string lease_with(Write write) {
  msgpack::sbuffer out;
  msgpack::packer<msgpack::sbuffer> packer(out);
  packer.pack_array(9);
  for (const int element : {static_cast<int>(kDataVersion), 2, 0, 2, 1, 1, 0}) {
    packer.pack(element);
  }
  packer.pack_nil();
  write(packer);
  return {out.data(), out.size()};
}

TEST(WireCodec, ALeaseSaysWhereEachConversationBegins) {
  const auto leased = decode(Plane::kData, lease_with([](auto& p) {
                               p.pack_array(2).pack_bin(1).pack_bin_body("a", 1);
                               p.pack_nil();
                             }));
  ASSERT_TRUE(leased.has_value()) << leased.error().message;
  EXPECT_EQ(std::get<Lease>(*leased).trajectories, (std::vector<Trajectory>{{2, "a"}}));
  EXPECT_THAT(refusal(Plane::kData, lease_with([](auto& p) {
                        p.pack_array(2).pack_nil().pack_bin(1).pack_bin_body("a", 1);
                      })),
              HasSubstr("conversation: the first command is of no conversation"));
  EXPECT_THAT(
      refusal(Plane::kData, lease_with([](auto& p) { p.pack_bin(1).pack_bin_body("a", 1); })),
      HasSubstr("conversation: one text for all rows"));
  EXPECT_THAT(refusal(Plane::kData, lease_with([](auto& p) { p.pack_array(2).pack(1).pack(2); })),
              HasSubstr("conversation: an integer"));
}

TEST(WireCodec, HostileControlMessagesAreRefusedByField) {
  const auto refused = [](const v1::Control& control) {
    return refusal(Plane::kControl, control.SerializeAsString());
  };
  EXPECT_THAT(refused({}), HasSubstr("no kind"));
  EXPECT_THAT(refusal(Plane::kControl, "\xFF\xFF"), HasSubstr("not Protobuf"));
  EXPECT_THAT(refusal(Plane::kControl, std::string(kControlBytesMax + 1, '\0')),
              HasSubstr("more than"));
  v1::Control control;
  control.mutable_prepare()->mutable_target()->set_api(4);
  EXPECT_THAT(refused(control), HasSubstr("target.api: unknown value 4"));
  control.mutable_prepare()->mutable_target()->set_api(1);
  control.mutable_prepare()->mutable_target()->set_balance(99);
  EXPECT_THAT(refused(control), HasSubstr("target.balance: unknown value 99"));
  control.mutable_arm_phase()->set_kind(3);
  EXPECT_THAT(refused(control), HasSubstr("arm_phase.kind"));
  control.mutable_arm_phase()->set_kind(0);
  control.mutable_arm_phase()->set_pacing(3);
  EXPECT_THAT(refused(control), HasSubstr("arm_phase.pacing"));
  control.mutable_progress()->mutable_ttft()->add_cells(1);
  EXPECT_THAT(refused(control), HasSubstr("progress.ttft: 1 cells with 0 counts"));
  control.mutable_progress()->mutable_ttft()->set_cells(0, 65'536);
  control.mutable_progress()->mutable_ttft()->add_counts(1);
  EXPECT_THAT(refused(control), HasSubstr("progress.ttft: no cell 65536"));
  control.mutable_body_chunk()->set_compressed(std::string(kBodyChunkBytesMax + 1, 'x'));
  EXPECT_THAT(refused(control), HasSubstr("body_chunk.compressed"));
}

TEST(WireCodec, AnUnknownFieldOfANewerPeerIsSkipped) {
  std::string bytes = encode(Message{Goodbye{"bye"}}).bytes;
  bytes += "\xC2\x3E\x01x";  // field 1000, bytes
  const auto decoded = decode(Plane::kControl, bytes);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(std::get<Goodbye>(*decoded).reason, "bye");
}

TEST(WireCodec, AnOrdinaryRecordTakesFewBytes) {
  RandomMessages random(3);
  RecordBatch batch{1, {}};
  base::Instant issued{5'000'000'000'000};
  for (base::Seq seq = 0; seq < 256; ++seq) {
    issued = issued + base::Duration::micros(static_cast<std::int64_t>(random.draw().below(800)));
    batch.records.push_back(random.usual_record(seq, issued));
  }
  EXPECT_LT(encode_records(batch).size() / batch.records.size(), 60u);
}

// What a batch pays for its records' gaps, and what exact stamps cost an event.
TEST(WireCodec, GapsTakeAFewBytesARecordAndStampsAFewBytesAnEvent) {
  RandomMessages random(5);
  RecordBatch batch{1, {}};
  for (base::Seq seq = 0; seq < 256; ++seq) {
    batch.records.push_back(random.usual_record(seq, base::Instant{5'000'000'000'000}));
  }
  const std::size_t bare = encode_records(batch).size();
  RecordBatch counted = batch;
  counted.gaps.push_back({1, {}});
  for (std::uint16_t cell = 1100; cell < 1400; ++cell) {  // three octaves and more, all hit
    counted.gaps[0].cells.emplace_back(cell, 1 + random.draw().below(600));
  }
  EXPECT_LT(encode_records(counted).size() - bare, 256U * 6) << "bytes a record";
  std::size_t events = 0;
  for (Record& record : batch.records) {
    base::Instant at = record.first_token_at;
    for (int i = 0; i < 100; ++i, ++events) {
      at = at +
           base::Duration::micros(static_cast<std::int64_t>(15'000 + random.draw().below(10'000)));
      record.chunk_at.push_back(at);
    }
  }
  EXPECT_LT(static_cast<double>(encode_records(batch).size() - bare),
            5.1 * static_cast<double>(events));
}

TEST(WireCodec, AnEmptyBatchAndAnEmptyLeaseAreMessages) {
  const Message batch = RecordBatch{9, {}};
  EXPECT_TRUE(decode(Plane::kData, encode(batch).bytes).value() == batch);
  const Message lease = Lease{3, {}};
  EXPECT_TRUE(decode(Plane::kData, encode(lease).bytes).value() == lease);
}

}  // namespace
}  // namespace tutti::wire
