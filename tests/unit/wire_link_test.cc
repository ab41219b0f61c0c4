// Link, rule by rule.

#include <gtest/gtest.h>

#include "common/wire/link.h"

namespace tutti::wire {
namespace {

using base::Duration;
using base::Id;
using base::Instant;

constexpr Id kUs{1, 1};
constexpr Id kThem{2, 2};
constexpr Id kOther{3, 3};
constexpr Instant kStart{1'000'000'000};

LinkConfig config() {
  LinkConfig out;
  out.heartbeat = Duration::millis(100);
  out.lost_after = Duration::seconds(1);
  out.retransmit_after = Duration::millis(50);
  out.ack_after = Duration::millis(5);
  out.window_max_frames = 4;
  out.window_max_bytes = 100;
  return out;
}

Instant at(std::int64_t ms) { return kStart + Duration::millis(ms); }

std::vector<Frame> poll(Link& link, Instant now) {
  std::vector<Frame> out;
  link.poll(now, out);
  return out;
}

std::vector<std::string> receive(Link& link, Frame frame, Instant now) {
  std::vector<Delivered> out;
  link.receive(std::move(frame), now, out);
  std::vector<std::string> texts;
  for (Delivered& each : out) {
    texts.push_back(std::move(each.payload));
  }
  return texts;
}

Frame theirs(std::uint64_t number, std::string payload, std::uint64_t ack = 0) {
  return Frame{kThem, kUs, number, ack, Plane::kControl, std::move(payload)};
}

TEST(WireLink, SendsAtOnceInOrderAndNamesThePeerOnceItIsKnown) {
  Link link(config(), kUs, kStart);
  ASSERT_TRUE(link.send(Plane::kData, "one", kStart));
  ASSERT_TRUE(link.send(Plane::kControl, "two", kStart));
  EXPECT_LE(link.next_deadline(), kStart);
  const auto frames = poll(link, kStart);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], (Frame{kUs, Id{}, 1, 0, Plane::kData, "one"}));
  EXPECT_EQ(frames[1], (Frame{kUs, Id{}, 2, 0, Plane::kControl, "two"}));
  receive(link, theirs(1, "hello"), at(1));
  ASSERT_TRUE(link.send(Plane::kData, "three", at(1)));
  EXPECT_EQ(poll(link, at(1)).at(0), (Frame{kUs, kThem, 3, 1, Plane::kData, "three"}));
  EXPECT_EQ(link.peer(), kThem);
}

TEST(WireLink, AnAckWaitsForARideButNotLongerThanAckAfter) {
  Link link(config(), kUs, kStart);
  receive(link, theirs(1, "x"), at(10));
  EXPECT_TRUE(poll(link, at(10)).empty());
  EXPECT_EQ(link.next_deadline(), at(15));
  EXPECT_FALSE(link.settled());
  const auto frames = poll(link, at(15));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0], (Frame{kUs, kThem, 0, 1, Plane::kControl, ""}));
  EXPECT_TRUE(link.settled());
  EXPECT_TRUE(poll(link, at(16)).empty()) << "one ack is enough";
}

TEST(WireLink, ManyReceivedFramesAreAckedAtOnce) {
  LinkConfig wide = config();
  wide.window_max_frames = 100;
  Link link(wide, kUs, kStart);
  for (std::uint64_t n = 1; n < Link::kAckEvery; ++n) {
    receive(link, theirs(n, "x"), at(1));
  }
  EXPECT_TRUE(poll(link, at(1)).empty());
  receive(link, theirs(Link::kAckEvery, "x"), at(1));
  EXPECT_EQ(poll(link, at(1)).at(0).ack, Link::kAckEvery);
}

// Else a few large ones would fill the peer's window and wait in it for nothing.
TEST(WireLink, ManyReceivedBytesAreAckedAtOnce) {
  LinkConfig wide = config();
  wide.window_max_bytes = 4 * Link::kAckBytes;
  Link link(wide, kUs, kStart);
  const std::string half(Link::kAckBytes / 2, 'x');
  for (const std::uint64_t n : {1U, 3U}) {
    receive(link, theirs(n, half), at(1));
    EXPECT_TRUE(poll(link, at(1)).empty()) << n;
    receive(link, theirs(n + 1, half), at(1));
    EXPECT_EQ(poll(link, at(1)).at(0).ack, n + 1);
  }
}

TEST(WireLink, RepeatsWithBackoffUntilAcked) {
  LinkConfig quiet = config();
  quiet.heartbeat = Duration::seconds(50);
  quiet.lost_after = Duration::seconds(100);
  Link link(quiet, kUs, kStart);
  ASSERT_TRUE(link.send(Plane::kData, "x", kStart));
  EXPECT_EQ(poll(link, at(0)).size(), 1u);
  std::vector<std::int64_t> repeats;
  for (std::int64_t ms = 1; ms <= 2000; ++ms) {
    for (const Frame& frame : poll(link, at(ms))) {
      EXPECT_EQ(frame.number, 1u);
      repeats.push_back(ms);
    }
  }
  EXPECT_EQ(repeats, (std::vector<std::int64_t>{50, 150, 350, 750, 1150, 1550, 1950}));
  EXPECT_EQ(link.counts().resent, 7u);
  EXPECT_FALSE(link.idle());
  receive(link, theirs(0, "", 1), at(2001));
  EXPECT_TRUE(link.idle());
  EXPECT_TRUE(poll(link, at(3000)).empty());
}

// What the peer said before it gave us up makes it look alive, but it cannot have heard us.
TEST(WireLink, OneThatStoodStillIsMuteWhateverCameInMeanwhile) {
  Link link(config(), kUs, kStart);
  receive(link, theirs(1, "x"), at(0));
  poll(link, at(100));
  EXPECT_FALSE(link.mute(at(1099)));
  EXPECT_TRUE(link.mute(at(1100)));
  receive(link, theirs(2, "y"), at(1100));
  EXPECT_FALSE(link.lost(at(1100)));
  EXPECT_TRUE(link.mute(at(1100)));
  poll(link, at(1100));
  EXPECT_FALSE(link.mute(at(1101)));
}

TEST(WireLink, AfterALossProgressReleasesTheNextBurst) {
  LinkConfig wide = config();
  wide.window_max_frames = 1000;
  wide.window_max_bytes = 1000;
  Link link(wide, kUs, kStart);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(link.send(Plane::kData, "x", kStart));
  }
  EXPECT_EQ(poll(link, kStart).size(), 200u);
  EXPECT_EQ(poll(link, at(50)).size(), Link::kResendBurstMax) << "not the whole window at once";
  EXPECT_TRUE(poll(link, at(51)).empty());
  receive(link, theirs(0, "", Link::kResendBurstMax), at(52));
  EXPECT_LE(link.next_deadline(), at(52));
  const auto frames = poll(link, at(52));
  ASSERT_EQ(frames.size(), Link::kResendBurstMax);
  EXPECT_EQ(frames[0].number, Link::kResendBurstMax + 1);
  receive(link, theirs(0, "", 200), at(53));
  EXPECT_TRUE(poll(link, at(53)).empty()) << "what was acked is not repeated";
}

TEST(WireLink, DropsDuplicatesAndAcksThemAgain) {
  Link link(config(), kUs, kStart);
  EXPECT_EQ(receive(link, theirs(1, "x"), at(0)).size(), 1u);
  poll(link, at(5));
  EXPECT_TRUE(receive(link, theirs(1, "x"), at(6)).empty());
  EXPECT_EQ(link.counts().duplicates, 1u);
  EXPECT_EQ(poll(link, at(6)).at(0).ack, 1u) << "at once: the first ack was lost";
}

TEST(WireLink, DeliversInOrderWhateverTheOrderOfArrival) {
  Link link(config(), kUs, kStart);
  EXPECT_TRUE(receive(link, theirs(3, "c"), at(0)).empty());
  EXPECT_TRUE(receive(link, theirs(2, "b"), at(0)).empty());
  EXPECT_TRUE(receive(link, theirs(3, "c"), at(0)).empty());
  EXPECT_EQ(receive(link, theirs(1, "a"), at(0)), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(link.counts().duplicates, 1u);
}

TEST(WireLink, HoldsNoMoreEarlyFramesThanTheWindow) {
  Link link(config(), kUs, kStart);
  receive(link, theirs(5, "x"), at(0));
  EXPECT_EQ(link.counts().beyond_window, 1u) << "5 is beyond a window of 4";
  receive(link, theirs(2, std::string(60, 'x')), at(0));
  receive(link, theirs(3, std::string(60, 'x')), at(0));
  EXPECT_EQ(link.counts().beyond_window, 2u) << "too many bytes";
  receive(link, theirs(UINT64_MAX, "x"), at(0));
  EXPECT_EQ(link.counts().beyond_window, 3u);
  EXPECT_EQ(receive(link, theirs(1, std::string(500, 'x')), at(0)).size(), 2u)
      << "the next one is always taken";
}

TEST(WireLink, AFullWindowIsAFactAndIsCounted) {
  Link link(config(), kUs, kStart);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(link.send(Plane::kData, "x", kStart));
  }
  EXPECT_FALSE(link.can_send());
  EXPECT_FALSE(link.send(Plane::kData, "y", kStart));
  EXPECT_EQ(link.counts().window_full, 1u);
  EXPECT_EQ(poll(link, kStart).size(), 4u);
  receive(link, theirs(0, "", 1), at(1));
  EXPECT_TRUE(link.can_send(97));
  EXPECT_FALSE(link.can_send(98)) << "3 of 100 bytes are taken";
}

TEST(WireLink, AnEmptyWindowTakesAMessageOfAnySize) {
  Link link(config(), kUs, kStart);
  ASSERT_TRUE(link.send(Plane::kData, std::string(1000, 'x'), kStart));
  EXPECT_FALSE(link.send(Plane::kData, "", kStart)) << "then it is full";
  poll(link, kStart);
  receive(link, theirs(0, "", 1), at(1));
  EXPECT_EQ(link.window_bytes(), 0u);
  EXPECT_TRUE(link.send(Plane::kData, "x", at(1)));
}

TEST(WireLink, BreaksASilenceWithHeartbeats) {
  Link link(config(), kUs, kStart);
  EXPECT_EQ(link.next_deadline(), at(100));
  EXPECT_TRUE(poll(link, at(99)).empty());
  EXPECT_EQ(poll(link, at(100)).at(0).number, 0u);
  EXPECT_TRUE(poll(link, at(199)).empty());
  EXPECT_EQ(poll(link, at(200)).size(), 1u);
  link.set_liveness(Duration::millis(300), Duration::seconds(2));
  EXPECT_TRUE(poll(link, at(499)).empty());
  EXPECT_EQ(poll(link, at(500)).size(), 1u);
  EXPECT_EQ(link.counts().bare_sent, 3u);
}

TEST(WireLink, IsLostAfterSilenceAndStaysSo) {
  Link link(config(), kUs, kStart);
  receive(link, theirs(0, ""), at(500));
  EXPECT_FALSE(link.lost(at(1499)));
  EXPECT_TRUE(link.lost(at(1500)));
  receive(link, theirs(0, ""), at(1600));
  EXPECT_FALSE(link.lost(at(1600))) << "poll() has not decided yet: a frame waited in the socket";
  EXPECT_TRUE(poll(link, at(2600)).empty());
  receive(link, theirs(1, "x"), at(2601));
  EXPECT_TRUE(link.lost(at(2601)));
  EXPECT_EQ(link.counts().after_lost, 1u);
  EXPECT_EQ(link.next_deadline(), base::kFarFuture);
  EXPECT_FALSE(link.send(Plane::kData, "x", at(2602)));
  EXPECT_TRUE(poll(link, at(3000)).empty());
}

TEST(WireLink, FramesOfNobodyElseAreTakenAndNoneKeepsItAlive) {
  Link link(config(), kUs, kStart);
  receive(link, theirs(1, "x"), at(0));
  EXPECT_TRUE(receive(link, Frame{kOther, kUs, 2, 0, Plane::kControl, "y"}, at(900)).empty());
  EXPECT_TRUE(receive(link, Frame{kThem, kOther, 2, 0, Plane::kControl, "y"}, at(900)).empty());
  EXPECT_TRUE(receive(link, Frame{kUs, kUs, 2, 0, Plane::kControl, "y"}, at(900)).empty());
  EXPECT_TRUE(receive(link, Frame{Id{}, kUs, 2, 0, Plane::kControl, "y"}, at(900)).empty());
  EXPECT_EQ(link.counts().other_sender, 3u);
  EXPECT_EQ(link.counts().other_target, 1u);
  EXPECT_TRUE(link.lost(at(1000)));
}

TEST(WireLink, APeerNamedFromTheStartIsTheOnlyOne) {
  Link link(config(), kUs, kStart, kThem);
  EXPECT_TRUE(receive(link, Frame{kOther, Id{}, 1, 0, Plane::kControl, "y"}, at(0)).empty());
  EXPECT_EQ(link.counts().other_sender, 1u);
  EXPECT_EQ(receive(link, theirs(1, "x"), at(0)).size(), 1u);
}

TEST(WireLink, ImpossibleFramesAreRefused) {
  Link link(config(), kUs, kStart);
  ASSERT_TRUE(link.send(Plane::kData, "x", kStart));
  receive(link, theirs(1, "a", 1), at(0));
  EXPECT_EQ(link.counts().malformed, 1u) << "acks what was never on the wire";
  poll(link, at(0));
  receive(link, theirs(1, "a", 2), at(0));
  EXPECT_EQ(link.counts().malformed, 2u);
  receive(link, theirs(0, "a"), at(0));
  EXPECT_EQ(link.counts().malformed, 3u) << "payload without a number";
  receive(link, Frame{kThem, Id{}, 1, 1, Plane::kControl, "a"}, at(0));
  EXPECT_EQ(link.counts().malformed, 4u) << "acks us without knowing us";
  EXPECT_FALSE(link.peer().is_set()) << "none of them introduced a peer";
  EXPECT_EQ(link.counts().delivered, 0u);
  EXPECT_EQ(receive(link, theirs(1, "a", 1), at(0)).size(), 1u);
  EXPECT_TRUE(link.idle());
}

}  // namespace
}  // namespace tutti::wire
