#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "common/base/random.h"
#include "common/text/json_read.h"
#include "common/text/json_write.h"
#include "common/text/utf8.h"

namespace tutti::text {
namespace {

using ::testing::HasSubstr;

std::string repr(double value) {
  std::string out;
  append_json_double(out, value);
  return out;
}

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string round_trip(std::string_view json) {
  const auto value = read_json(json);
  return value ? value->to_json() : "error: " + value.error().to_text();
}

TEST(JsonWrite, WritesDoublesLikePythonsRepr) {
  EXPECT_EQ(repr(0.7), "0.7");
  EXPECT_EQ(repr(1.0), "1.0");
  EXPECT_EQ(repr(0.0), "0.0");
  EXPECT_EQ(repr(-0.0), "-0.0");
  EXPECT_EQ(repr(-2.5), "-2.5");
  EXPECT_EQ(repr(100.0), "100.0");
  EXPECT_EQ(repr(1e15), "1000000000000000.0");
  EXPECT_EQ(repr(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(repr(1e16), "1e+16");
  EXPECT_EQ(repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(repr(0.0001), "0.0001");
  EXPECT_EQ(repr(0.00012345), "0.00012345");
  EXPECT_EQ(repr(0.00001), "1e-05");
  EXPECT_EQ(repr(1.5e-7), "1.5e-07");
  EXPECT_EQ(repr(1e100), "1e+100");
  EXPECT_EQ(repr(5e-324), "5e-324");
  EXPECT_EQ(repr(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(repr(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(repr(std::nan("")), "null");
  EXPECT_EQ(repr(-std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonWrite, DoublesReadBackEqual) {
  base::Mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random.next_bits(64);
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) {
      const auto back = read_json(repr(value));
      ASSERT_TRUE(back) << repr(value);
      ASSERT_EQ(back->kind(), JsonKind::kDouble) << repr(value);
      ASSERT_EQ(back->as_double(), value) << repr(value);
    }
  }
}

TEST(JsonWrite, EscapesOnlyWhatMustBe) {
  EXPECT_EQ(quoted("a/b \x7F h\xC3\xA9"), "\"a/b \x7F h\xC3\xA9\"");
  EXPECT_EQ(quoted("\"\\\b\t\n\f\r\x01\x1F"), R"("\"\\\b\t\n\f\r\u0001\u001f")");
  EXPECT_EQ(quoted(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonWrite, ReplacesBrokenUtf8AsPythonDoes) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(quoted("a\xFFz"), "\"a" + r + "z\"");
  EXPECT_EQ(quoted("\xF0\x9F\x98"), "\"" + r + "\"");  // cut emoji: one part
  EXPECT_EQ(quoted("\xF0\x9F\x98z"), "\"" + r + "z\"");
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"" + r + r + r + "\"");  // surrogate
  EXPECT_EQ(quoted("\xC0\xAF"), "\"" + r + r + "\"");          // overlong
  EXPECT_EQ(quoted("\xE2\x82"), "\"" + r + "\"");
  EXPECT_EQ(quoted("\x80"), "\"" + r + "\"");
  EXPECT_EQ(quoted("\xF4\x90\x80\x80"), "\"" + r + r + r + r + "\"");
}

TEST(JsonWrite, PlacesCommas) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("a").integer(-1).key("b").begin_array().string("x").null().end_array();
  json.key("c").begin_object().end_object().key("d").boolean(false);
  json.key("e")
      .unsigned_integer(UINT64_MAX)
      .key("f")
      .raw("[1]")
      .key("g")
      .begin_array()
      .begin_array();
  json.end_array().number(1).end_array().end_object();
  EXPECT_EQ(out, R"({"a":-1,"b":["x",null],"c":{},"d":false,"e":18446744073709551615,"f":[1],)"
                 R"("g":[[],1.0]})");
}

TEST(Utf8, ClipsBetweenCodePoints) {
  const std::string_view text = "a\xF0\x9F\x98\x80z";
  EXPECT_EQ(clip_utf8(text, 0), "");
  EXPECT_EQ(clip_utf8(text, 1), "a");
  EXPECT_EQ(clip_utf8(text, 2), "a");
  EXPECT_EQ(clip_utf8(text, 4), "a");
  EXPECT_EQ(clip_utf8(text, 5), "a\xF0\x9F\x98\x80");
  EXPECT_EQ(clip_utf8(text, 99), text);
}

TEST(JsonRead, KeepsOrderAndNumberKinds) {
  const auto value = read_json(
      R"( {"z":1,"a":-9223372036854775808,"u":18446744073709551615,"d":1.0,"e":1e2,"n":null,"b":true,
           "s":"\u00e9\ud83d\ude00\/","l":[1,[2]],"o":{}} )");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->find("z")->kind(), JsonKind::kInt);
  EXPECT_EQ(value->find("a")->as_int(), INT64_MIN);
  EXPECT_EQ(value->find("u")->kind(), JsonKind::kUint);
  EXPECT_EQ(value->find("u")->as_uint(), UINT64_MAX);
  EXPECT_EQ(value->find("d")->kind(), JsonKind::kDouble);
  EXPECT_EQ(value->find("nope"), nullptr);
  EXPECT_EQ(value->to_json(),
            "{\"z\":1,\"a\":-9223372036854775808,\"u\":18446744073709551615,\"d\":1.0,\"e\":100.0,"
            "\"n\":null,\"b\":true,\"s\":\"\xC3\xA9\xF0\x9F\x98\x80/\",\"l\":[1,[2]],\"o\":{}}");
}

TEST(JsonRead, OfRepeatedKeysTheFirstPlaceAndTheLastValueCount) {
  EXPECT_EQ(round_trip(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) {
    many += "\"k" + std::to_string(i % 20) + "\":" + std::to_string(i) + (i < 39 ? "," : "}");
  }
  const auto value = read_json(many);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->members().size(), 20U);
  EXPECT_EQ(value->members()[3].first, "k3");
  EXPECT_EQ(value->members()[3].second.as_int(), 23);
}

TEST(JsonRead, NamesThePlaceOfAnError) {
  const auto error = [](std::string_view text) {
    const auto value = read_json(text);
    return value ? JsonError{} : value.error();
  };
  EXPECT_EQ(error("{\"a\":1,\n \"b\":tru}").line, 2U);
  EXPECT_EQ(error("{\"a\":1,\n \"b\":tru}").offset, 16U);
  EXPECT_EQ(error("[1,2").line, 1U);
  EXPECT_EQ(error("").reason, "empty document");
  EXPECT_EQ(error(" \n").reason, "empty document");
  EXPECT_FALSE(error("{} x").reason.empty());
  EXPECT_FALSE(error("\"\xFF\"").reason.empty());
  EXPECT_FALSE(error("[\"a\nb\"]").reason.empty());  // raw control character
  EXPECT_FALSE(error("[01]").reason.empty());
  EXPECT_FALSE(error("[NaN]").reason.empty());
  EXPECT_THAT(error("[1, 123456789012345678901234567890]").reason, HasSubstr("64 bits"));
  EXPECT_EQ(error("[1, 123456789012345678901234567890]").offset, 4U);
}

TEST(JsonRead, RefusesWhatIsTooDeepOrTooLarge) {
  const JsonLimits limits{100, 3};
  EXPECT_TRUE(read_json("[[[1]]]", limits));
  const auto deep = read_json("[\"[[[[\",[[[1]]]]", limits);
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().reason, HasSubstr("deeper than 3"));
  EXPECT_EQ(deep.error().offset, 10U);
  EXPECT_FALSE(read_json(std::string(101, ' ') + "1", limits));
  EXPECT_FALSE(read_json(std::string(100000, '['), JsonLimits{}));
}

TEST(JsonRead, SkipsABom) { EXPECT_EQ(round_trip("\xEF\xBB\xBF[1]"), "[1]"); }

TEST(JsonRead, HandsOutItemsOneByOne) {
  std::string seen;
  const auto value =
      read_json_items("[1,\"a\",{\"b\":2},4]", {}, [&seen](std::size_t i, JsonValue&& item) {
        seen += std::to_string(i) + item.to_json() + ' ';
        return i < 2;
      });
  ASSERT_TRUE(value);
  EXPECT_TRUE(value->is_array());
  EXPECT_EQ(seen, "01 1\"a\" 2{\"b\":2} ");
  const auto object =
      read_json_items("{\"a\":1}", {}, [](std::size_t, JsonValue&&) { return true; });
  EXPECT_EQ(object->to_json(), "{\"a\":1}");
}

}  // namespace
}  // namespace tutti::text
