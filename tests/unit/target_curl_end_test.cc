#include <curl/curl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "agent/target/curl_end.h"

namespace tutti::target {
namespace {

using testing::HasSubstr;

CurlFacts facts(CURLcode code, int os_error = 0, std::string_view text = {}) {
  CurlFacts made;
  made.code = code;
  made.os_error = os_error;
  made.curl_text = text;
  made.frontend = "h:80";
  return made;
}

TEST(CurlEnd, CodesThatStandForOneKindOfEnd) {
  EXPECT_EQ(end_kind_of(facts(CURLE_OK)), EndKind::kComplete);
  EXPECT_EQ(end_kind_of(facts(CURLE_COULDNT_RESOLVE_HOST)), EndKind::kConnect);
  EXPECT_EQ(end_kind_of(facts(CURLE_COULDNT_CONNECT)), EndKind::kConnect);
  EXPECT_EQ(end_kind_of(facts(CURLE_OPERATION_TIMEDOUT)), EndKind::kConnectTimeout);
  EXPECT_EQ(end_kind_of(facts(CURLE_PEER_FAILED_VERIFICATION)), EndKind::kTls);
  EXPECT_EQ(end_kind_of(facts(CURLE_SSL_CONNECT_ERROR)), EndKind::kTls);
  EXPECT_EQ(end_kind_of(facts(CURLE_PARTIAL_FILE)), EndKind::kClosed);
  EXPECT_EQ(end_kind_of(facts(CURLE_GOT_NOTHING)), EndKind::kReset);
  EXPECT_EQ(end_kind_of(facts(CURLE_RECV_ERROR)), EndKind::kReset);
  EXPECT_EQ(end_kind_of(facts(CURLE_SEND_ERROR)), EndKind::kReset);
  EXPECT_EQ(end_kind_of(facts(CURLE_UNSUPPORTED_PROTOCOL)), EndKind::kBadReply);
  EXPECT_EQ(end_kind_of(facts(CURLE_WEIRD_SERVER_REPLY)), EndKind::kBadReply);
  EXPECT_EQ(end_kind_of(facts(CURLE_OUT_OF_MEMORY)), EndKind::kInternal);
}

TEST(CurlEnd, AnyCodeHasASentenceWithTheFrontend) {
  for (int code = 1; code < CURL_LAST; ++code) {
    EXPECT_THAT(end_detail_of(facts(static_cast<CURLcode>(code))), HasSubstr("h:80: "));
    EXPECT_NE(end_kind_of(facts(static_cast<CURLcode>(code))), EndKind::kComplete);
  }
}

TEST(CurlEnd, KnownSystemErrorsComeWithARemedy) {
  EXPECT_THAT(end_detail_of(facts(CURLE_COULDNT_CONNECT, EADDRNOTAVAIL)),
              HasSubstr("fewer connections per frontend"));
  EXPECT_THAT(end_detail_of(facts(CURLE_COULDNT_CONNECT, EMFILE)), HasSubstr("more agents"));
  EXPECT_THAT(end_detail_of(facts(CURLE_COULDNT_CONNECT, ECONNREFUSED, "Failed")),
              HasSubstr("Connection refused (Failed)"));
}

TEST(CurlEnd, WhatThisHostLacksIsNoFrontendsFault) {
  for (const int shortage : {EADDRNOTAVAIL, EADDRINUSE, EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EXPECT_TRUE(is_shortage_here(shortage)) << shortage;
  }
  for (const int other : {0, ECONNREFUSED, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, EINPROGRESS}) {
    EXPECT_FALSE(is_shortage_here(other)) << other;
  }
}

}  // namespace
}  // namespace tutti::target
