// A model's files travel whole, and damage is not taken for a model.

#include "common/model/model_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::model {
namespace {

ModelFiles some_files() {
  return {"folder", std::string("{\"a\":\0}", 7), "", "{}", "{{ messages }}"};
}

TEST(ModelPack, ComesBackByteForByteUnderItsHash) {
  const std::string packed = pack(some_files());
  const auto back = unpack(packed, "elsewhere");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->name, "elsewhere");
  EXPECT_EQ(back->tokenizer_json, some_files().tokenizer_json);
  EXPECT_EQ(back->tokenizer_config, "");
  EXPECT_EQ(back->special_tokens_map, "{}");
  EXPECT_EQ(back->chat_template, "{{ messages }}");
  EXPECT_EQ(content_hash(packed), content_hash(pack(*back))) << "the name is not in it";
  EXPECT_EQ(content_hash(packed).size(), 32U);
  ModelFiles other = some_files();
  other.chat_template += " ";
  EXPECT_NE(content_hash(packed), content_hash(pack(other)));
}

TEST(ModelPack, WhatIsCutOrLongerOrWithoutATokenizerIsRefused) {
  const std::string packed = pack(some_files());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(unpack(packed.substr(0, size), "x").has_value()) << size;
  }
  EXPECT_FALSE(unpack(packed + "x", "x").has_value());
  EXPECT_FALSE(unpack(std::string(32, '\xFF'), "x").has_value()) << "lengths beyond the end";
  const auto empty = unpack(pack(ModelFiles{}), "x");
  ASSERT_FALSE(empty.has_value());
  EXPECT_THAT(empty.error().message, testing::HasSubstr("x: not a packed model"));
}

}  // namespace
}  // namespace tutti::model
