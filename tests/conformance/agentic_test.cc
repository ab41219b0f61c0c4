// Conversations against the vectors: the marks, the salted system prompt, and which conversation is
// played when under which name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/blake2b.h"
#include "common/plan/trajectories.h"

namespace tutti::plan {
namespace {

using nlohmann::json;

json vectors() {
  std::ifstream file(TUTTI_SOURCE_DIR "/tests/conformance/agentic.json");
  return json::parse(file);
}

TEST(AgenticConformance, MarksOfPassesAndConversations) {
  const json all = vectors();
  ASSERT_GE(all["repeat_id"].size(), 20U);
  for (const auto& [pass, mark] : all["repeat_id"].items()) {
    EXPECT_EQ(mark_text(pass_mark(std::stoull(pass))), "[salt: " + mark.get<std::string>());
  }
  for (const auto& [id, mark] : all["conversation_id"].items()) {
    EXPECT_EQ(conversation_mark(id), mark.get<std::string>()) << id;
  }
  // The four more that the description names.
  EXPECT_EQ(conversation_mark("c1"), "6d82");
  EXPECT_EQ(conversation_mark("conv_001"), "74ce");
  EXPECT_EQ(conversation_mark("sim_000001"), "1bd4");
  EXPECT_EQ(pass_mark(2), 0xba75U);
}

TEST(AgenticConformance, TheSaltedSystemPrompt) {
  const json example = vectors()["example"];
  EXPECT_EQ(mark_text(pass_mark(example["repeat_id"].get<std::uint64_t>())) +
                salted_rest(example["conversation_id"], example["content"]),
            example["salted"].get<std::string>());
}

// Which of the conversations of one pass comes first is the seed's business, here and in the newer
// reference; the vectors have the order of the file.
TEST(AgenticConformance, EachPassPlaysEachConversationOnceUnderThePassesName) {
  const json wanted = vectors()["instances"];
  auto conversations = std::make_shared<Conversations>();
  for (std::size_t i = 0; i < wanted["n_conversations"]; ++i) {
    conversations->push_back(
        {"c" + std::to_string(i), {{static_cast<base::SampleIndex>(i), {}, 1}}});
  }
  TrajectorySpec spec;
  spec.count = wanted["budget"];
  spec.order_seed = 42;
  const auto made = Trajectories::make(conversations, spec);
  ASSERT_TRUE(made.has_value());
  ASSERT_EQ((*made)->count(), wanted["sequence"].size());
  std::vector<std::string> ours;
  std::vector<std::string> theirs;
  for (const json& one : wanted["sequence"]) {
    const std::uint64_t k = one["k"];
    EXPECT_EQ((*made)->pass(k), one["repeat"].get<std::uint64_t>()) << k;
    const std::string& source = (*made)->conversation(k).id;
    EXPECT_EQ((*made)->logical_id(k),
              one["repeat"] == 1 ? source : source + "__repeat_" + one["repeat"].dump());
    if (k / conversations->size() < 2) {  // whole passes: the same names, in some order
      ours.push_back((*made)->logical_id(k));
      theirs.push_back(one["logical_id"]);
    }
  }
  EXPECT_THAT(ours, testing::UnorderedElementsAreArray(theirs));
}

TEST(AgenticConformance, Blake2bOfOtherLengthsAndMessages) {  // RFC 7693, appendix A, and hashlib
  EXPECT_EQ(base::blake2b_hex("abc", 64),
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
            "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923");
  EXPECT_EQ(base::blake2b_hex("", 64),
            "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419"
            "d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce");
  EXPECT_EQ(base::blake2b_hex(std::string(128, 'a'), 16), "1271d28e731afb57bdfba6bdaf3501be");
  EXPECT_EQ(base::blake2b_hex(std::string(129, 'a'), 16), "68b7bafbad5055c4ebe6eb170a0f8524");
  EXPECT_EQ(base::blake2b_hex(std::string(300, 'b'), 2), "7f38");
}

}  // namespace
}  // namespace tutti::plan
