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

TEST(FrontendPicker, LeastInFlightFillsTheGapAndRotatesTies) {
  FrontendPicker picker(base::Balance::kLeastInFlight, 3, 0);
  std::vector<int> first;
  for (int i = 0; i < 6; ++i) {
    const std::uint16_t f = picker.pick(0);
    picker.started(f);
    first.push_back(f);
  }
  EXPECT_THAT(first, testing::ElementsAre(0, 1, 2, 0, 1, 2));
  picker.ended(1);
  EXPECT_EQ(picker.pick(0), 1);
  picker.started(1);
  EXPECT_EQ(picker.in_flight(1), 2U);
}

TEST(FrontendPicker, WorkersBeginAtDifferentFrontends) {
  FrontendPicker second(base::Balance::kLeastInFlight, 3, 4);
  EXPECT_EQ(second.pick(0), 1);
}

TEST(FrontendPicker, RoundRobinIsTheSequenceAndPinnedTheWorker) {
  FrontendPicker robin(base::Balance::kRoundRobin, 3, 1);
  FrontendPicker pinned(base::Balance::kPinned, 3, 7);
  for (base::Seq seq = 0; seq < 9; ++seq) {
    EXPECT_EQ(robin.pick(seq), seq % 3);
    EXPECT_EQ(pinned.pick(seq), 1);
  }
}

}  // namespace
}  // namespace tutti::target
