#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/target/frontend.h"

namespace tutti::target {
namespace {

using testing::HasSubstr;
using testing::Not;

base::Result<std::vector<Frontend>> parse(const std::string& url) {
  wire::TargetSpec target;
  target.urls = {url};
  return parse_frontends(target);
}

TEST(Frontends, ReadsHostPortAndScheme) {
  const auto plain = parse("http://h:8000/v1/chat/completions");
  ASSERT_TRUE(plain);
  EXPECT_EQ((*plain)[0].label, "h:8000");
  EXPECT_FALSE((*plain)[0].tls);
  EXPECT_EQ((*plain)[0].url, "http://h:8000/v1/chat/completions");
  const auto secure = parse("https://h/v1");
  ASSERT_TRUE(secure);
  EXPECT_EQ((*secure)[0].label, "h:443");
  EXPECT_TRUE((*secure)[0].tls);
  const auto six = parse("http://[::1]:80/v1");
  ASSERT_TRUE(six);
  EXPECT_EQ((*six)[0].label, "[::1]:80");
}

TEST(Frontends, UserInfoIsLeftOut) {
  const auto frontends = parse("http://user:geheim@h:1/x#part");
  ASSERT_TRUE(frontends);
  EXPECT_EQ((*frontends)[0].url, "http://h:1/x");
}

TEST(Frontends, TheTransportsOwnHeadersAreRefused) {
  wire::TargetSpec target;
  target.urls = {"http://h:1/x"};
  for (const char* name : {"host", "Content-Length", "Transfer-encoding", "Expect"}) {
    target.headers = {{name, "1"}};
    const auto frontends = parse_frontends(target);
    ASSERT_FALSE(frontends) << name;
    EXPECT_THAT(frontends.error().message, HasSubstr(name));
  }
}

TEST(Frontends, EveryWayTakesHttpAndHttpsMixed) {
  wire::TargetSpec target;
  target.urls = {"http://h:1/x", "https://s:2/x"};
  for (const base::Way way : {base::Way::kAuto, base::Way::kDirect, base::Way::kMulti}) {
    target.way = way;
    const auto frontends = parse_frontends(target);
    ASSERT_TRUE(frontends);
    EXPECT_FALSE((*frontends)[0].tls);
    EXPECT_TRUE((*frontends)[1].tls);
  }
}

TEST(Frontends, BadUrlsSayWhatWouldBeRight) {
  for (const char* bad :
       {"", "h:8000/x", "ftp://h/", "http://", "http://h:99999/", "http://h :1/"}) {
    const auto frontends = parse(bad);
    ASSERT_FALSE(frontends) << bad;
    EXPECT_THAT(frontends.error().message, HasSubstr("http"));
  }
  const auto secret = parse("ftp://user:geheim@h/");
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, Not(HasSubstr("geheim")));
  EXPECT_FALSE(parse_frontends(wire::TargetSpec{}));
}

}  // namespace
}  // namespace tutti::target
