// The URL join of the reference client, on the cases its behaviour is known for.

#include "common/data/request_url.h"

#include <gtest/gtest.h>

namespace tutti::data {
namespace {

std::string chat(const char* endpoint) { return request_url(endpoint, base::ApiType::kOpenAiChat); }

TEST(RequestUrl, TrailingSlashesDoNotMatter) {
  for (const char* endpoint : {"http://h:8000", "http://h:8000/", "http://h:8000//"}) {
    EXPECT_EQ(chat(endpoint), "http://h:8000/v1/chat/completions");
  }
}

TEST(RequestUrl, APrefixIsKeptAndAVersionDoubled) {
  EXPECT_EQ(chat("http://h/api/"), "http://h/api/v1/chat/completions");
  EXPECT_EQ(chat("http://h:8000/v1"), "http://h:8000/v1/v1/chat/completions");
  EXPECT_TRUE(doubles_version("http://h:8000/v1/"));
  EXPECT_FALSE(doubles_version("http://h:8000/api"));
}

TEST(RequestUrl, AQueryTakesItsSegmentAlong) {
  EXPECT_EQ(chat("http://h/api?x=1"), "http://h/v1/chat/completions");
  EXPECT_EQ(chat("http://h?x=1"), "http://h/v1/chat/completions");
}

TEST(RequestUrl, UserinfoIsDroppedAndTheHostLowered) {
  EXPECT_EQ(chat("https://u:p@h/x/"), "https://h/x/v1/chat/completions");
  EXPECT_EQ(chat("http://H.Example:8000/A"), "http://h.example:8000/A/v1/chat/completions");
  EXPECT_EQ(chat("http://[::1]:80"), "http://[::1]:80/v1/chat/completions");
}

TEST(RequestUrl, CompletionsHaveTheirOwnRoute) {
  EXPECT_EQ(request_url("http://h", base::ApiType::kOpenAiCompletions), "http://h/v1/completions");
  EXPECT_EQ(request_url("http://h", base::ApiType::kSglang), "http://h/generate");
  EXPECT_EQ(request_url("http://h/api/", base::ApiType::kVideogen),
            "http://h/api/v1/videos/generations");
}

}  // namespace
}  // namespace tutti::data
