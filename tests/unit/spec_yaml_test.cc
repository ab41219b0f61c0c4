// YAML text to Tree, scalar types, environment references, coercions and durations. Most vectors
// of them are in tests/conformance/config.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/spec/coerce.h"
#include "common/spec/interpolate.h"
#include "common/spec/yaml_scalar.h"
#include "common/spec/yaml_text.h"

namespace tutti::spec {
namespace {

using Kind = Tree::Kind;
using testing::HasSubstr;
using testing::SizeIs;

struct Parsed {
  Tree tree;
  base::Problems problems;
  base::Problems warnings;
};

Parsed parse(std::string_view text) {
  Parsed parsed;
  parsed.tree = tree_from_yaml(text, "f.yaml", parsed.problems, parsed.warnings);
  return parsed;
}

TEST(SpecScalar, TypesAreThoseOfYaml11) {
  struct Case {
    const char* text;
    Kind kind;
    double value;  // of bool, int and float
  };
  const Case cases[] = {
      {"on", Kind::kBool, 1},
      {"off", Kind::kBool, 0},
      {"yes", Kind::kBool, 1},
      {"no", Kind::kBool, 0},
      {"true", Kind::kBool, 1},
      {"False", Kind::kBool, 0},
      {"ON", Kind::kBool, 1},
      {"oN", Kind::kString, 0},
      {"y", Kind::kString, 0},
      {"n", Kind::kString, 0},
      {"Y", Kind::kString, 0},
      {"~", Kind::kNull, 0},
      {"null", Kind::kNull, 0},
      {"Null", Kind::kNull, 0},
      {"", Kind::kNull, 0},
      {"nUll", Kind::kString, 0},
      {"1e5", Kind::kString, 0},
      {"1.5e3", Kind::kString, 0},
      {"1e+5", Kind::kString, 0},
      {"1.0e+5", Kind::kFloat, 1e5},
      {"1.5e-3", Kind::kFloat, 1.5e-3},
      {".5", Kind::kFloat, 0.5},
      {"1.", Kind::kFloat, 1},
      {"+1.5", Kind::kFloat, 1.5},
      {"-1.5", Kind::kFloat, -1.5},
      {"-.5", Kind::kString, 0},
      {".", Kind::kString, 0},
      {"._5", Kind::kString, 0},
      {"010", Kind::kInt, 8},
      {"-010", Kind::kInt, -8},
      {"08", Kind::kString, 0},
      {"0o10", Kind::kString, 0},
      {"0x1F", Kind::kInt, 31},
      {"0x", Kind::kString, 0},
      {"0b11", Kind::kInt, 3},
      {"0b12", Kind::kString, 0},
      {"1_000", Kind::kInt, 1000},
      {"_1", Kind::kString, 0},
      {"0", Kind::kInt, 0},
      {"+7", Kind::kInt, 7},
      {"1:30", Kind::kInt, 90},
      {"10:00", Kind::kInt, 600},
      {"1:60", Kind::kString, 0},
      {"01:30", Kind::kString, 0},
      {"-1:30", Kind::kInt, -90},
      {"1:30.5", Kind::kFloat, 90.5},
      {"2026-09-19", Kind::kDate, 0},
      {"2026-9-19", Kind::kString, 0},
      {"2026-09-19T10:00:00Z", Kind::kDate, 0},
      {"1.2.3", Kind::kString, 0},
      {"http://h", Kind::kString, 0},
      {"-", Kind::kString, 0},
      {"1.0e5", Kind::kString, 0},
  };
  for (const Case& c : cases) {
    const Tree tree = plain_scalar(c.text);
    ASSERT_EQ(tree.kind, c.kind) << c.text;
    if (tree.kind == Kind::kBool) {
      EXPECT_EQ(tree.boolean, c.value != 0) << c.text;
    } else if (tree.kind == Kind::kInt) {
      EXPECT_EQ(tree.whole.to_double(), c.value) << c.text;
    } else if (tree.kind == Kind::kFloat) {
      EXPECT_EQ(tree.real, c.value) << c.text;
    }
  }
  EXPECT_EQ(plain_scalar(".inf").real, INFINITY);
  EXPECT_EQ(plain_scalar("-.inf").real, -INFINITY);
  EXPECT_TRUE(std::isnan(plain_scalar(".nan").real));
  EXPECT_EQ(plain_scalar("18446744073709551615").whole.magnitude, UINT64_MAX);
  EXPECT_FALSE(plain_scalar("18446744073709551615").whole.too_large);
  EXPECT_TRUE(plain_scalar("18446744073709551616").whole.too_large);
}

TEST(SpecYaml, QuotedScalarsAreText) {
  const Parsed parsed = parse("{a: \"on\", b: '1', c: !!str 7, d: !!float 3}");
  ASSERT_THAT(parsed.problems, SizeIs(0));
  EXPECT_EQ(parsed.tree.find("a")->kind, Kind::kString);
  EXPECT_EQ(parsed.tree.find("b")->text, "1");
  EXPECT_EQ(parsed.tree.find("c")->text, "7");
  EXPECT_EQ(parsed.tree.find("d")->real, 3.0);
}

TEST(SpecYaml, EveryNodeKnowsItsLine) {
  const Parsed parsed = parse("a: 1\nb:\n  - x\n  - y: {z: 2}\n");
  EXPECT_EQ(parsed.tree.find_path("a")->where, "f.yaml:1");
  EXPECT_EQ(parsed.tree.find_path("b.0")->where, "f.yaml:3");
  EXPECT_EQ(parsed.tree.find_path("b.1.y.z")->where, "f.yaml:4");
  EXPECT_EQ(parsed.tree.find_path("b.2"), nullptr);
  EXPECT_EQ(parsed.tree.find_path("b.x"), nullptr);
}

TEST(SpecYaml, LastOfDuplicateKeysWinsWithAWarningThatNamesBothLines) {
  const Parsed parsed = parse("a: 1\nb: 2\na: 3\n");
  EXPECT_EQ(parsed.tree.find("a")->whole.magnitude, 3U);
  EXPECT_THAT(parsed.tree.entries, SizeIs(2));
  ASSERT_THAT(parsed.warnings, SizeIs(1));
  EXPECT_EQ(parsed.warnings[0].where, "f.yaml:3");
  EXPECT_THAT(parsed.warnings[0].remedy, HasSubstr("f.yaml:1"));
}

TEST(SpecYaml, MergeKeysGiveWayToOwnKeysAndToEarlierMerges) {
  const Parsed parsed = parse(
      "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\none: {<<: *x, b: 9}\ntwo:\n  b: 9\n  <<: [*y, *x]\n"
      "text: {'<<': 1}\n");
  ASSERT_THAT(parsed.problems, SizeIs(0));
  const auto value = [&](const char* path) { return parsed.tree.find_path(path)->whole.magnitude; };
  EXPECT_EQ(value("one.a"), 1U);
  EXPECT_EQ(value("one.b"), 9U);
  EXPECT_EQ(value("two.a"), 1U);
  EXPECT_EQ(value("two.b"), 9U);
  EXPECT_EQ(value("two.c"), 2U);
  EXPECT_EQ(parsed.tree.find("one")->find("<<"), nullptr);
  EXPECT_EQ(parsed.tree.find("text")->find("<<")->whole.magnitude, 1U);

  const Parsed order = parse("x: &x {a: 1}\ny: &y {a: 2}\nz: {<<: [*y, *x]}\n");
  EXPECT_EQ(order.tree.find_path("z.a")->whole.magnitude, 2U);
  EXPECT_THAT(parse("a: {<<: 1}").problems, SizeIs(1));
}

TEST(SpecYaml, AliasesAreCopies) {
  const Parsed parsed = parse("a: &a [1, 2]\nb: *a\n");
  EXPECT_TRUE(same_value(*parsed.tree.find("a"), *parsed.tree.find("b")));
}

TEST(SpecYaml, BadTextIsAProblemWithALine) {
  const char* texts[] = {"a: [1, 2\n",     "a: b: c\n",         "\ta: 1\n",     "a: 1\n\tb: 2\n",
                         "a: *nowhere\n",  "a: 1\n---\nb: 2\n", "{[1]: 2}\n",   "? {a: 1}\n: 2\n",
                         "a: !!set {b}\n", "a: !!int x\n",      "a: !mine 1\n", "a: &a [*a]\n"};
  for (const char* text : texts) {
    const Parsed parsed = parse(text);
    ASSERT_THAT(parsed.problems, SizeIs(1)) << text;
    EXPECT_THAT(parsed.problems[0].where, HasSubstr("f.yaml")) << text;
  }
}

TEST(SpecYaml, OnlyUtf8TextWithoutControlCharactersIsRead) {
  for (const char* text : {"a: \xFF\n", "a: \xC0\x80", "a: \xED\xA0\x80", "a: \xF5\x80\x80\x80",
                           "a: \xE2\x82", "a: \x01", "a: \x7F"}) {
    const Parsed parsed = parse(std::string("x: 1\n") + text);
    ASSERT_THAT(parsed.problems, SizeIs(1)) << text;
    EXPECT_EQ(parsed.problems[0].where, "f.yaml:2") << text;
  }
  EXPECT_THAT(parse("a: é€😀").problems, SizeIs(0));
}

TEST(SpecYaml, AliasBombsAndDeepNestingAreRefused) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 1; j < 10; ++j) {
      bomb += "," + below;
    }
    bomb += "]\n";
  }
  const Parsed parsed = parse(bomb);
  ASSERT_THAT(parsed.problems, SizeIs(1));
  EXPECT_THAT(parsed.problems[0].remedy, HasSubstr("more than"));

  EXPECT_THAT(parse(std::string(60, '[') + std::string(60, ']')).problems, SizeIs(0));
  EXPECT_THAT(parse(std::string(80, '[') + std::string(80, ']')).problems, SizeIs(1));
  EXPECT_THAT(parse(std::string(100'000, '[')).problems, SizeIs(1));
}

// ---- environment -----------------------------------------------------------------------------

std::optional<std::string> test_environment(const std::string& name) {
  if (name == "A") return "x";
  if (name == "A_B") return "under";
  if (name == "EMPTY") return "";
  if (name == "D") return "p$$q";
  return std::nullopt;
}

TEST(SpecInterpolation, TouchesStringValuesOnlyAndReportsEveryUnsetVariable) {
  Parsed parsed = parse("$A: $A\nlist: ['$A', {k: '${U}'}]\nn: 5\nb: $V\n");
  interpolate(parsed.tree, test_environment, parsed.problems);
  EXPECT_EQ(parsed.tree.find("$A")->text, "x");
  EXPECT_EQ(parsed.tree.find_path("list.0")->text, "x");
  ASSERT_THAT(parsed.problems, SizeIs(2));
  EXPECT_EQ(parsed.problems[0].field, "list.1.k");
  EXPECT_EQ(parsed.problems[0].where, "f.yaml:2");
  EXPECT_EQ(parsed.problems[1].field, "b");
}

// ---- coercion --------------------------------------------------------------------------------

Tree text(const char* value) { return Tree::of_string(value); }

TEST(SpecCoercion, IntsAreTakenLenientlyButNeverRounded) {
  const std::pair<const char*, std::int64_t> good[] = {
      {"5", 5},        {"+5", 5},  {"-5", -5},  {" 5 ", 5},
      {"1_000", 1000}, {"5.0", 5}, {"5.00", 5}, {"9223372036854775807", INT64_MAX}};
  for (const auto& [in, out] : good) {
    const auto value = to_int(text(in));
    ASSERT_TRUE(value) << in;
    EXPECT_EQ(*value, out) << in;
  }
  for (const char* in : {"5.5", "1e3", "0x10", "", "1__0", "_1", "1_", "5.", "true", "--5", "+-5",
                         "9223372036854775808", "99999999999999999999999"}) {
    EXPECT_FALSE(to_int(text(in))) << in;
  }
  EXPECT_EQ(to_int(Tree::of_bool(true)).value(), 1);
  EXPECT_EQ(to_int(Tree::of_float(5.0)).value(), 5);
  EXPECT_FALSE(to_int(Tree::of_float(5.5)));
  EXPECT_FALSE(to_int(Tree::of_float(1e300)));
  EXPECT_FALSE(to_int(Tree::of_float(std::nan(""))));
  EXPECT_FALSE(to_int(Tree{}));
  EXPECT_FALSE(to_int(Tree::list()));
  EXPECT_EQ(to_whole(text("18446744073709551615")).value().magnitude, UINT64_MAX);
}

TEST(SpecCoercion, FloatsBoolsAndText) {
  const std::pair<const char*, double> floats[] = {{"1e5", 1e5}, {" 2 ", 2},        {"-.5", -0.5},
                                                   {"+3", 3},    {"inf", INFINITY}, {"1e-3", 1e-3}};
  for (const auto& [in, out] : floats) {
    ASSERT_TRUE(to_float(text(in))) << in;
    EXPECT_EQ(*to_float(text(in)), out) << in;
  }
  EXPECT_TRUE(std::isnan(to_float(text("nan")).value()));
  EXPECT_EQ(to_float(Tree::of_bool(true)).value(), 1.0);
  EXPECT_EQ(to_float(Tree::of_int(7)).value(), 7.0);
  for (const char* in : {"", "x", "1 2", "nan(1)", "0x10", "+-1"}) {
    EXPECT_FALSE(to_float(text(in))) << in;
  }
  for (const char* in : {"true", "T", "YES", "y", "On", "1"}) {
    EXPECT_TRUE(to_bool(text(in)).value()) << in;
  }
  for (const char* in : {"false", "F", "no", "N", "OFF", "0"}) {
    EXPECT_FALSE(to_bool(text(in)).value()) << in;
  }
  EXPECT_TRUE(to_bool(Tree::of_int(1)).value());
  EXPECT_FALSE(to_bool(Tree::of_float(0.0)).value());
  EXPECT_FALSE(to_bool(Tree::of_int(2)));
  EXPECT_FALSE(to_bool(Tree::of_int(-1)));
  EXPECT_FALSE(to_bool(text("maybe")));
  EXPECT_FALSE(to_text(Tree::of_int(1)));
  EXPECT_FALSE(to_text(Tree::of_bool(true)));
  EXPECT_FALSE(to_text(Tree::of_float(1.0)));
}

TEST(SpecCoercion, DurationsAreMilliseconds) {
  const std::pair<const char*, std::int64_t> good[] = {
      {"600s", 600000}, {"10m", 600000},  {"600000ms", 600000}, {"600000", 600000},
      {"0.5m", 30000},  {"1.5s", 1500},   {" 10m ", 600000},    {"1.9999s", 1999},
      {"0.0004s", 0},   {"1e2s", 100000}, {"-1s", -1000},       {"10 m", 600000},
      {"5 s", 5000}};
  for (const auto& [in, out] : good) {
    const auto value = to_duration_ms(text(in));
    ASSERT_TRUE(value) << in;
    EXPECT_EQ(*value, out) << in;
  }
  EXPECT_EQ(to_duration_ms(Tree::of_int(600000)).value(), 600000);
  for (const char* in :
       {"1.5ms", "1e3ms", "ms", "s", "m", "1h", "1 h", "10M", "1m30s", "infs", "1e300m", ""}) {
    EXPECT_FALSE(to_duration_ms(text(in))) << in;
  }
}

}  // namespace
}  // namespace tutti::spec
