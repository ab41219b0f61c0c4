// Whatever tree is written as YAML reads back as the same tree; merging has an identity; no
// argument list and no byte sequence brings the readers down.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/spec/flags.h"
#include "common/spec/read.h"
#include "common/spec/yaml_scalar.h"
#include "common/spec/yaml_text.h"
#include "common/spec/yaml_writer.h"

namespace tutti::spec {
namespace {

// Pieces that have bitten YAML writers.
std::string random_text(base::Mt19937& random) {
  static const std::vector<std::string> kPieces{
      "a",  "on", "1", "_", ":", ": ", " ", "#",    " #", "-",  "- ",   "?",    "'", "\"",  "\\",
      "\n", "\t", "{", "}", "[", "]",  ",", "&",    "*",  "!",  "%",    "@",    "`", ">",   "|",
      "<<", "=",  "~", "é", "€", "😀",  ".", "null", "0x", "e+", "\x01", "\x7f", "$", "---", "..."};
  std::string text;
  const std::uint64_t count = random.below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    text += kPieces[random.below(kPieces.size())];
  }
  return text;
}

Tree random_tree(base::Mt19937& random, int depth) {
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0:
      return Tree{};
    case 1:
      return Tree::of_bool(random.below(2) == 1);
    case 2:
      return Tree::of_int(static_cast<std::int64_t>(random.next_bits(64)));
    case 3:
      return Tree::of_float((random.next_double() - 0.5) * (random.below(2) == 1 ? 1e-8 : 1e20));
    case 4:
    case 5:
      return Tree::of_string(random_text(random));
    case 6: {
      Tree list = Tree::list();
      for (std::uint64_t i = random.below(4); i > 0; --i) {
        list.items.push_back(random_tree(random, depth - 1));
      }
      return list;
    }
    default:
      break;
  }
  Tree map = Tree::map();
  for (std::uint64_t i = random.below(4); i > 0; --i) {
    map.set(random.below(10) == 0 ? std::string(1500, 'k') : random_text(random),
            random_tree(random, depth - 1));
  }
  return map;
}

TEST(SpecProperty, WrittenYamlReadsBackAsTheSameTree) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    base::Mt19937 random(seed);
    Tree tree = Tree::map();
    tree.set("root", random_tree(random, 4));
    const std::string yaml = to_yaml(tree);
    base::Problems problems;
    base::Problems warnings;
    const Tree again = tree_from_yaml(yaml, "y", problems, warnings);
    ASSERT_TRUE(problems.empty()) << seed << ": " << problems[0].remedy << "\n" << yaml;
    ASSERT_TRUE(warnings.empty()) << seed << "\n" << yaml;
    ASSERT_TRUE(same_value(tree, again)) << seed << "\n" << yaml << "\n" << to_yaml(again);
  }
}

TEST(SpecProperty, MergingAnEmptyMappingChangesNothing) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    base::Mt19937 random(seed);
    Tree tree = Tree::map();
    tree.set("root", random_tree(random, 3));
    EXPECT_TRUE(same_value(merged(tree, Tree::map()), tree));
    EXPECT_TRUE(same_value(merged(Tree::map(), tree), tree));
    EXPECT_TRUE(same_value(merged(tree, tree), tree));
  }
}

TEST(SpecProperty, NoArgumentListIsAcceptedAndEmptyOrBringsTheReaderDown) {
  const std::vector<std::string> kPieces{"--endpoints",
                                         "http://h",
                                         "--model",
                                         "m",
                                         "--dataset",
                                         "d.jsonl",
                                         "--runtime",
                                         "{}",
                                         "{\"a\":1}",
                                         "-1",
                                         "--warmup",
                                         "--no-warmup",
                                         "--=",
                                         "--",
                                         "-",
                                         "",
                                         "--client.",
                                         "--.x",
                                         "--model-params.chat-template-kwargs.a.b",
                                         "--model-params.chat-template-kwargs.",
                                         "--agents",
                                         ",",
                                         "tcp://a:1",
                                         "--mode",
                                         "--settings={}",
                                         "--load-pattern",
                                         "concurrency",
                                         "--concurrency=4",
                                         "--drain",
                                         "--duration",
                                         "--early-stopping"};
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    base::Mt19937 random(seed);
    std::vector<std::string> args{"--endpoints", "http://h", "--model", "m", "--dataset", "d"};
    args.resize(random.below(2) == 0 ? 0 : args.size());
    for (std::uint64_t i = random.below(8); i > 0; --i) {
      args.push_back(kPieces[random.below(kPieces.size())]);
    }
    const Ordering order = order_from_flags(TestType::kOffline, args);
    if (order) {
      ++accepted;
      EXPECT_FALSE(order->config.endpoint_config.endpoints.empty());
    } else {
      EXPECT_FALSE(order.error().problems.empty());
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace tutti::spec
