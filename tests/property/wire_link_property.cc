// Link, over thousands of seeds: whatever the network loses, doubles, delays or reorders, each side
// is handed exactly what the other's send() took, once and in order, until a link says lost; and as
// long as the network lets anything through, no link does.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/wire/envelope.h"
#include "common/wire/link.h"

namespace tutti::wire {
namespace {

using base::Duration;
using base::Instant;

struct Weather {
  std::uint64_t lost_percent = 0;
  std::uint64_t doubled_percent = 0;
  Duration delay_max{};                 // uniform from 0: reorders
  Instant cut_from = base::kFarFuture;  // nothing arrives from here …
  Instant cut_until{};                  // … to here
};

struct Side {
  Side(const LinkConfig& config, base::Id self, Instant now) : link(config, self, now) {}
  Link link;
  std::vector<std::string> taken;      // by send()
  std::vector<std::string> delivered;  // by receive()
};

class Wire {
 public:
  Wire(std::uint64_t seed, const Weather& weather, const LinkConfig& config)
      : draw_(seed), weather_(weather), a_(config, {1, seed}, now_), b_(config, {2, seed}, now_) {}

  // Until `messages` went each way and all is acknowledged, a link is lost, or time is up.
  void run(std::size_t messages, Duration time_max) {
    const Instant end = now_ + time_max;
    while (now_ < end && !done(messages)) {
      offer(a_, messages);
      offer(b_, messages);
      flush(a_, b_);
      flush(b_, a_);
      const Instant next = std::min({end, soonest_arrival(), a_.link.next_deadline(),
                                     b_.link.next_deadline(), now_ + Duration::millis(20)});
      now_ = std::max(now_ + Duration::micros(1), next);
      arrive();
    }
  }

  bool done(std::size_t messages) const {
    return lost() || (a_.taken.size() == messages && b_.taken.size() == messages &&
                      a_.link.settled() && b_.link.settled());
  }
  bool lost() const { return a_.link.lost(now_) || b_.link.lost(now_); }
  const Side& a() const { return a_; }
  const Side& b() const { return b_; }

 private:
  void offer(Side& side, std::size_t messages) {
    for (std::uint64_t i = draw_.below(6); i-- > 0 && side.taken.size() < messages;) {
      std::string text(static_cast<std::size_t>(draw_.below(60)), 'x');
      text += std::to_string(side.taken.size());
      if (!side.link.send(Plane::kData, text, now_)) {
        return;
      }
      side.taken.push_back(std::move(text));
    }
  }

  void flush(Side& from, Side& to) {
    std::vector<Frame> frames;
    from.link.poll(now_, frames);
    for (const Frame& frame : frames) {
      const std::uint64_t copies = draw_.below(100) < weather_.doubled_percent ? 2 : 1;
      for (std::uint64_t copy = 0; copy < copies; ++copy) {
        const bool cut = now_ >= weather_.cut_from && now_ < weather_.cut_until;
        if (cut || draw_.below(100) < weather_.lost_percent) {
          continue;
        }
        const auto span = static_cast<std::uint64_t>(weather_.delay_max.ns) + 1;
        const auto delay = Duration::nanos(static_cast<std::int64_t>(draw_.below(span)));
        flying_.emplace(now_ + delay, std::make_pair(&to, frame));
      }
    }
  }

  Instant soonest_arrival() const {
    return flying_.empty() ? base::kFarFuture : flying_.begin()->first;
  }

  void arrive() {
    while (!flying_.empty() && flying_.begin()->first <= now_) {
      auto [side, frame] = flying_.begin()->second;
      flying_.erase(flying_.begin());
      std::vector<Delivered> out;
      side->link.receive(std::move(frame), now_, out);
      for (Delivered& each : out) {
        side->delivered.push_back(std::move(each.payload));
      }
    }
  }

  base::Mt19937 draw_;
  Weather weather_;
  Instant now_{1'000'000'000};
  Side a_;
  Side b_;
  std::multimap<Instant, std::pair<Side*, Frame>> flying_;
};

bool is_prefix(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

TEST(WireLinkProperty, EverythingArrivesOnceAndInOrderInBadWeather) {
  std::uint64_t resent = 0;
  std::uint64_t duplicates = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    base::Mt19937 draw(seed ^ 0xABCDEF);
    Weather weather;
    weather.lost_percent = draw.below(50);
    weather.doubled_percent = draw.below(50);
    weather.delay_max = Duration::millis(static_cast<std::int64_t>(draw.below(300)));
    LinkConfig config;
    config.window_max_frames = static_cast<std::size_t>(1 + draw.below(64));
    config.window_max_bytes = static_cast<std::size_t>(1 + draw.below(2000));
    config.lost_after = Duration::seconds(60);
    Wire wire(seed, weather, config);
    wire.run(80, Duration::seconds(600));
    ASSERT_FALSE(wire.lost()) << "seed " << seed;
    ASSERT_EQ(wire.a().taken.size(), 80u) << "seed " << seed;
    ASSERT_EQ(wire.b().delivered, wire.a().taken) << "seed " << seed;
    ASSERT_EQ(wire.a().delivered, wire.b().taken) << "seed " << seed;
    ASSERT_EQ(wire.a().link.counts().malformed, 0u) << "seed " << seed;
    resent += wire.a().link.counts().resent;
    duplicates += wire.b().link.counts().duplicates;
  }
  EXPECT_GT(resent, 0u);
  EXPECT_GT(duplicates, 0u);
}

TEST(WireLinkProperty, ALinkCutForGoodSaysLostAndWhatCameBeforeIsAnOrderedPrefix) {
  std::size_t incomplete = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    base::Mt19937 draw(seed ^ 0x5EED);
    Weather weather;
    weather.lost_percent = draw.below(30);
    weather.doubled_percent = draw.below(30);
    weather.delay_max = Duration::millis(static_cast<std::int64_t>(draw.below(100)));
    weather.cut_from = Instant{1'000'000'000 + static_cast<std::int64_t>(draw.below(900'000'000))};
    weather.cut_until = base::kFarFuture;
    Wire wire(seed, weather, LinkConfig{});
    wire.run(4000, Duration::seconds(60));
    ASSERT_TRUE(wire.lost() || wire.a().taken.size() == 4000) << "seed " << seed;
    ASSERT_TRUE(is_prefix(wire.b().delivered, wire.a().taken)) << "seed " << seed;
    ASSERT_TRUE(is_prefix(wire.a().delivered, wire.b().taken)) << "seed " << seed;
    incomplete += wire.b().delivered.size() < wire.a().taken.size() ? 1U : 0U;
  }
  EXPECT_GT(incomplete, 200u);
}

TEST(WireLinkProperty, APartitionShorterThanLostAfterIsOnlyADelay) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    base::Mt19937 draw(seed ^ 0xCAFE);
    Weather weather;
    weather.delay_max = Duration::millis(static_cast<std::int64_t>(draw.below(50)));
    weather.cut_from = Instant{1'000'000'000 + static_cast<std::int64_t>(draw.below(200'000'000))};
    weather.cut_until =
        weather.cut_from + Duration::millis(static_cast<std::int64_t>(draw.below(5'000)));
    Wire wire(seed, weather, LinkConfig{});
    wire.run(500, Duration::seconds(60));
    ASSERT_FALSE(wire.lost()) << "seed " << seed;
    ASSERT_EQ(wire.b().delivered, wire.a().taken) << "seed " << seed;
    ASSERT_EQ(wire.a().delivered, wire.b().taken) << "seed " << seed;
    ASSERT_EQ(wire.a().taken.size(), 500u) << "seed " << seed;
  }
}

TEST(WireEnvelopeProperty, EveryFrameSurvivesAndEveryDamagedHeaderIsAFrameOrAReason) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Mt19937 draw(seed);
    Frame frame;
    frame.from = {draw.next_bits(64), draw.next_bits(64) | 1};
    frame.to = {draw.next_bits(64), draw.next_bits(64)};
    frame.number = draw.below(3) == 0 ? 0 : draw.next_bits(64) | 1;
    frame.ack = draw.next_bits(64);
    frame.plane = draw.below(2) == 0 ? Plane::kControl : Plane::kData;
    if (frame.number != 0) {
      const auto bytes = draw.bytes(static_cast<std::size_t>(draw.below(50)));
      frame.payload.assign(bytes.begin(), bytes.end());
    }
    std::string bytes = encode_envelope(frame);
    const auto back = decode_envelope(bytes);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    ASSERT_TRUE(*back == frame);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_FALSE(decode_envelope(std::string_view(bytes).substr(0, size)));
    }
    bytes[static_cast<std::size_t>(draw.below(bytes.size()))] ^=
        static_cast<char>(1 + draw.below(255));
    if (const auto damaged = decode_envelope(bytes)) {
      ASSERT_EQ(encode_envelope(*damaged), bytes);
    }
  }
}

}  // namespace
}  // namespace tutti::wire
