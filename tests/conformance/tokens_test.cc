// Token counts and chat templates on a small model of our own, against what the Hugging Face
// libraries made of the same cases (tokens_expected.py); tokens_against_hf has real models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/token_cases.h"

namespace tutti {
namespace {

using testing::HasSubstr;

const std::string kTests = std::string(TUTTI_SOURCE_DIR) + "/tests/";

model::ModelFiles tiny_files() {
  auto files = model::read_model_files(kTests + "support/tiny_model");
  EXPECT_TRUE(files.has_value());
  return files ? *files : model::ModelFiles{};
}

TEST(Tokens, without_cargo_are_refused_by_name) {
  if (model::has_tokenizers()) {
    GTEST_SKIP() << "this build has its Rust part";
  }
  const auto counter = model::TokenCounter::open(tiny_files());
  ASSERT_FALSE(counter.has_value());
  EXPECT_THAT(counter.error().message, HasSubstr("install cargo"));
}

class TinyModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!model::has_tokenizers()) {
      GTEST_SKIP() << "NOT TESTED: this build has no Rust part; install cargo";
    }
    auto opened = model::TokenCounter::open(tiny_files());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    counter_.emplace(std::move(*opened));
  }

  std::optional<model::TokenCounter> counter_;
};

TEST_F(TinyModel, counts_and_renders_as_the_hugging_face_libraries) {
  std::ifstream in(kTests + "conformance/tokens_tiny.jsonl");
  int cases = 0;
  for (std::string line; std::getline(in, line); ++cases) {
    const auto one = text::read_json(line);
    ASSERT_TRUE(one.has_value());
    EXPECT_EQ(test::check_token_case(*counter_, *one), "") << line;
  }
  EXPECT_GT(cases, 80);
}

TEST_F(TinyModel, decodes_what_it_encoded) {
  const std::string text = "Grüße, 世界! <|user|> \n\t42";
  const auto ids = counter_->tokenizer().encode(text);
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(counter_->text(text).value(), ids->size());
  EXPECT_EQ(counter_->tokenizer().decode(*ids).value(), text);
  EXPECT_EQ(counter_->tokenizer().id_of("<|user|>"), 2);
  EXPECT_EQ(counter_->tokenizer().id_of("no such token"), -1);
  EXPECT_EQ(counter_->tokenizer().vocab_size(), 520U);
}

TEST_F(TinyModel, many_threads_count_alike) {
  const std::string text(20'000, 'x');
  const std::uint64_t wanted = counter_->text(text).value();
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> got(4);
  for (std::size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        got[i] += counter_->text(text).value();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(got, testing::Each(20 * wanted));
}

TEST_F(TinyModel, broken_files_are_errors_with_the_file_s_name) {
  for (const std::string json : {"", "{", "{}", "[]", R"({"model":{"type":"BPE"}})"}) {
    const auto opened = model::Tokenizer::open(json, "some/tokenizer.json");
    ASSERT_FALSE(opened.has_value()) << json;
    EXPECT_THAT(opened.error().message, HasSubstr("some/tokenizer.json"));
  }
  model::ModelFiles files = tiny_files();
  files.tokenizer_config = "{\"chat_template\": ";
  EXPECT_FALSE(model::TokenCounter::open(files).has_value());
  files = tiny_files();
  files.chat_template = "{% if %}";
  EXPECT_FALSE(model::TokenCounter::open(files).has_value());
}

TEST_F(TinyModel, text_that_is_not_utf8_is_an_error_and_no_crash) {
  EXPECT_FALSE(counter_->text("a\xff").has_value());
}

TEST_F(TinyModel, a_reply_that_the_template_cannot_write_is_counted_by_its_pieces) {
  model::ModelFiles files = tiny_files();
  files.chat_template =
      "{% for m in messages %}{{ m.content }}{% if m.reasoning_content %}"
      "{{ raise_exception('no reasoning here') }}{% endif %}{% endfor %}";
  const auto counter = model::TokenCounter::open(files);
  ASSERT_TRUE(counter.has_value());
  const auto counted = counter->reply({"content", "reasoning", ""});
  ASSERT_TRUE(counted.has_value());
  EXPECT_TRUE(counted->without_template);
  EXPECT_EQ(counted->tokens, counter->text("content\nreasoning").value());
}

TEST(ModelFiles, of_other_bytes_have_another_fingerprint) {
  model::ModelFiles files = tiny_files();
  const std::uint64_t as_is = files.fingerprint();
  EXPECT_EQ(as_is, tiny_files().fingerprint());
  files.special_tokens_map.swap(files.tokenizer_config);
  EXPECT_NE(files.fingerprint(), as_is);
}

TEST(ModelFiles,
     are_found_as_paths_and_in_the_hub_s_cache_and_else_the_error_says_where_was_looked) {
  const std::string folder = kTests + "support/tiny_model";
  EXPECT_EQ(model::find_model(folder).value(), folder);
  EXPECT_FALSE(model::find_model("/no/such/folder").has_value());
  setenv("HF_HUB_CACHE", "/no/such/cache", 1);
  const auto missing = model::find_model("some-org/some-model");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/cache/models--some-org--some-model"));
  unsetenv("HF_HUB_CACHE");
  EXPECT_FALSE(model::read_model_files(kTests + "support").has_value());
}

}  // namespace
}  // namespace tutti
