// A frontend that ends connections without a reply: how long it counts as in trouble, how often it
// is then asked, over real sockets too; and what is not told of its words.

#include "agent/target/troubled_frontends.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "agent/target/connect_paces.h"
#include "agent/target/credentials.h"
#include "tests/support/own_sockets.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::ScriptedRequest;
using support::ScriptedServer;
using target::TroubledFrontends;
using testing::HasSubstr;
using wire::Failure;

wire::Record ended(Failure failure) {
  wire::Record record;
  record.failure = failure;
  return record;
}

TEST(TroubledFrontends, LastsFromAFailureOfTheConnectionToTheNextWholeReply) {
  for (const Failure failure : {Failure::kConnect, Failure::kConnectTimeout, Failure::kTls,
                                Failure::kReset, Failure::kTruncated}) {
    TroubledFrontends frontends(2, 1000);
    EXPECT_FALSE(frontends.in_trouble(1));
    frontends.note_end(1, ended(failure));
    EXPECT_TRUE(frontends.in_trouble(1));
    EXPECT_FALSE(frontends.in_trouble(0));
    for (const Failure silent :
         {Failure::kRequestTimeout, Failure::kCancelled, Failure::kInternal}) {
      frontends.note_end(1, ended(silent));
      EXPECT_TRUE(frontends.in_trouble(1)) << "says nothing of connections";
    }
    frontends.note_end(0, ended(Failure::kNone));
    EXPECT_TRUE(frontends.in_trouble(1)) << "another one's success";
    frontends.note_end(1,
                       ended(failure == Failure::kReset ? Failure::kHttpStatus : Failure::kNone));
    EXPECT_FALSE(frontends.in_trouble(1));
  }
}

// The rate is that of the records' own stamps, so a slow machine only makes it smaller.
TEST(TroubledFrontends, ADeadOneIsAskedAtABoundedRate) {
  EngineRig rig({fmt::format("http://127.0.0.1:{}/x", support::closed_port())});
  rig.config.slots = 64;
  rig.arm(base::Pacing::kClosedLoop, 64);
  rig.issue(1500);
  ASSERT_TRUE(rig.pump_records(1500));
  Instant first = base::kFarFuture;
  Instant last{};
  for (const wire::Record& record : rig.records) {
    EXPECT_EQ(record.failure, Failure::kConnect);
    first = std::min(first, record.done_at);
    last = std::max(last, record.done_at);
  }
  // 64 may be on their way before the first failure is known, and 15 go at once.
  EXPECT_LE(1500, 1500 * (last - first).to_seconds() + 64 + 15 + 1);
}

// 1,000 a second: one lets 10 through at once, and then one a millisecond.
TEST(ConnectPaces, OneThatCameBackGoesFirstAndIsChargedOutOfTheLine) {
  target::ConnectPaces paces(2, 0, 1000);
  const Instant now{1'000'000'000};
  const Instant later = now + Duration::millis(5);
  EXPECT_FALSE(paces.bounds(0) || paces.bounds(1));
  paces.note_end(0, ended(Failure::kConnect));
  paces.note_end(1, ended(Failure::kConnect));
  EXPECT_TRUE(paces.bounds(0) && paces.bounds(1));
  EXPECT_TRUE(paces.goes_first(0, now, 1, later)) << "both dead: by age";
  EXPECT_FALSE(paces.goes_first(1, later, 0, now));
  paces.note_end(1, ended(Failure::kNone));
  EXPECT_TRUE(paces.goes_first(1, later, 0, now)) << "younger, and its frontend answers";
  EXPECT_FALSE(paces.goes_first(0, now, 1, later));

  for (int i = 0; i < 100; ++i) {
    paces.charge(1, false, now);  // nothing bounds it: not from the line, not charged
  }
  EXPECT_TRUE(paces.open(now));
  int opened = 0;
  for (; opened < 100 && paces.open(now); ++opened) {
    paces.charge(1, true, now);
  }
  EXPECT_EQ(opened, 10);
  EXPECT_EQ(paces.next_at(), now + Duration::millis(1));
}

TEST(ConnectPaces, ARateForAllIsTheOnlyOneChargedAndKeepsTheOrderOfAge) {
  target::ConnectPaces paces(2, 100, 1000);
  const Instant now{1'000'000'000};
  paces.note_end(0, ended(Failure::kReset));
  EXPECT_TRUE(paces.bounds(0) && paces.bounds(1));
  EXPECT_TRUE(paces.goes_first(0, now, 1, now + Duration::millis(1)));
  paces.charge(1, false, now);
  EXPECT_FALSE(paces.open(now));
  EXPECT_EQ(paces.next_at(), now + Duration::millis(10));
}

// Its queries wait in a line; those of the other frontend never stand behind them.
TEST(TroubledFrontends, ItsLineIsNotTheOthers) {
  ScriptedServer server(
      [](const ScriptedRequest&) { return support::Script{support::close_now()}; });
  ScriptedServer good([](const ScriptedRequest&) { return support::stream_script({"a"}); });
  EngineRig rig({server.url(), good.url()});
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.config.slots = 32;
  rig.arm(base::Pacing::kClosedLoop, 32);
  rig.issue(800);
  ASSERT_TRUE(rig.pump_records(800));
  std::size_t whole = 0;
  for (const wire::Record& record : rig.records) {
    whole += record.failure == Failure::kNone ? 1U : 0U;
    EXPECT_EQ(record.failure == Failure::kNone, record.frontend == 1);
  }
  EXPECT_EQ(whole, 400U);
}

// A vanished host says nothing; the kernel must ask.
TEST(TroubledFrontends, ConnectionsAskASilentPeerWhetherItIsThere) {
  ScriptedServer server([](const ScriptedRequest&) { return support::stream_script({"a"}); });
  EngineRig rig({server.url()});
  rig.one();
  const auto sockets = support::sockets_to(server.port());
  ASSERT_FALSE(sockets.empty());
  for (const int fd : sockets) {
    const auto option = [fd](int level, int name) {
      int value = 0;
      socklen_t length = sizeof value;
      EXPECT_EQ(getsockopt(fd, level, name, &value, &length), 0);
      return value;
    };
    EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE) +
                  option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT),
              60);
  }
}

TEST(Credentials, AreNotQuotedFromAServersError) {
  wire::TargetSpec target;
  target.headers = {{"Content-Type", "application/json"},
                    {"Authorization", "Bearer sk-0123456789"},
                    {"X-Team-Pass", "open sesame"}};
  const auto proxy = target::parse_proxy("http://anna:pass%20word@proxy:3128");
  ASSERT_TRUE(proxy) << proxy.error().message;
  const auto hidden = [&](std::string text) {
    target::hide_credentials(target, *proxy, text);
    return text;
  };
  EXPECT_EQ(hidden("bad key sk-0123456789, sk-0123456789!"), "bad key <redacted>, <redacted>!");
  EXPECT_EQ(hidden("cut: sk-012345"), "cut: <redacted");
  EXPECT_EQ(hidden("sk-01 application/json"), "sk-01 application/json");
  EXPECT_EQ(hidden("who says open sesame?"), "who says <redacted>?");
  EXPECT_EQ(hidden("407: Basic YW5uYTpwYXNzIHdvcmQ= or pass word"),
            "407: Basic <redacted> or <redacted");
  EXPECT_EQ(hidden(""), "");
}

}  // namespace
}  // namespace tutti::drive
