// Peers: many dialled agents fit into one process, one receive() is bounded, and an agent whose
// frames still wait in the socket is not lost, however late the coordinator is.

#include "coordinator/conduct/peers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/base/id.h"
#include "common/sys/limits.h"
#include "common/wire/codec.h"
#include "common/wire/envelope.h"
#include "common/wire/link.h"

namespace tutti::conduct {
namespace {

using base::Duration;
using base::Instant;

std::string socket_path(const std::string& name) {
  return fmt::format("ipc://{}/tutti-peers-{}-{}", std::filesystem::temp_directory_path().string(),
                     getpid(), name);
}

// An agent that says what it is told to.
struct Caller {
  Caller(const wire::SocketContext& context, const std::string& endpoint, Instant now)
      : socket(std::move(*wire::DialSocket::open(context, endpoint, {}))),
        link({}, base::fresh_id(), now) {}

  void say(std::uint64_t count, Instant now) {
    for (std::uint64_t i = 0; i < count; ++i) {
      auto encoded = wire::encode(wire::Message(wire::Drained{0, said++, 0}));
      ASSERT_TRUE(link.send(encoded.plane, std::move(encoded.bytes), now));
    }
    std::vector<wire::Frame> frames;
    link.poll(now, frames);
    for (const auto& frame : frames) {
      ASSERT_EQ(socket.send(wire::encode_envelope(frame)), wire::SendResult::kSent);
    }
  }

  wire::DialSocket socket;
  wire::Link link;
  std::uint64_t said = 0;
};

struct Seen {
  std::size_t joined = 0;
  std::size_t lost = 0;
  std::vector<std::uint64_t> heard;  // next number expected, by agent key
  bool in_order = true;

  std::size_t take(const std::vector<PeerEvent>& events) {
    std::size_t arrivals = 0;
    for (const auto& event : events) {
      joined += std::holds_alternative<PeerJoined>(event) ? 1U : 0U;
      lost += std::holds_alternative<PeerLost>(event) ? 1U : 0U;
      if (const auto* arrival = std::get_if<Arrival>(&event)) {
        ++arrivals;
        heard.resize(std::max<std::size_t>(heard.size(), arrival->agent + 1));
        const auto& drained = std::get<wire::Drained>(arrival->message);
        in_order = in_order && drained.started == heard[arrival->agent]++;
      }
    }
    return arrivals;
  }
};

TEST(Peers, DialAThousandAgents) {
  if (sys::raise_open_files_limit().soft < 6'000) {
    GTEST_SKIP() << "NOT TESTED: needs 6,000 open files";
  }
  PeerSettings settings;
  for (int i = 0; i < 1'000; ++i) {
    settings.dial.push_back(socket_path(fmt::format("nobody-{}", i)));
  }
  settings.sockets.linger = {};
  auto peers = Peers::open(std::move(settings), Instant{1});
  ASSERT_TRUE(peers) << peers.error().message;
  std::vector<PeerEvent> events;
  (*peers)->announce_dialled(events);
  EXPECT_EQ(events.size(), 1'000U);
}

// An agent that is dialled: answers each message with a word of its own.
struct Called {
  Called(const wire::SocketContext& context, int number, Instant now)
      : socket(std::move(
            *wire::ListenSocket::open(context, socket_path(fmt::format("called-{}", number)), {}))),
        link({}, base::fresh_id(), now) {}

  void turn(Instant now) {
    std::string bytes;
    std::vector<wire::Delivered> delivered;
    while (socket.receive(route, bytes)) {
      link.receive(std::move(*wire::decode_envelope(bytes)), now, delivered);
    }
    for (std::size_t i = 0; i < delivered.size(); ++i) {
      auto encoded = wire::encode(wire::Message(wire::Drained{0, said++, 0}));
      ASSERT_TRUE(link.send(encoded.plane, std::move(encoded.bytes), now));
    }
    std::vector<wire::Frame> frames;
    link.poll(now, frames);
    for (const auto& frame : frames) {
      socket.send(route, wire::encode_envelope(frame));
    }
  }

  wire::ListenSocket socket;
  wire::Link link;
  std::string route;
  std::uint64_t said = 0;
};

// Only those that told of something are looked at, and a send may take that word from a socket:
// nobody may be overheard for it, in whatever order they speak.
TEST(Peers, HearEachOfManyDialledAgents) {
  constexpr std::size_t kAgents = 40;
  constexpr std::uint64_t kWords = 50;  // to each
  const base::SystemClock clock;
  const wire::SocketContext context;
  std::vector<std::unique_ptr<Called>> agents;
  PeerSettings settings;
  for (std::size_t i = 0; i < kAgents; ++i) {
    agents.push_back(std::make_unique<Called>(context, static_cast<int>(i), clock.mono()));
    settings.dial.push_back(agents.back()->socket.endpoint());
  }
  settings.dial_patience = Duration::seconds(60);
  auto opened = Peers::open(std::move(settings), clock.mono());
  ASSERT_TRUE(opened) << opened.error().message;
  Peers& peers = **opened;
  std::vector<PeerEvent> events;
  peers.announce_dialled(events);
  std::vector<AgentKey> keys;
  for (const auto& event : events) {
    keys.push_back(std::get<PeerJoined>(event).agent);
  }
  Seen seen;
  std::vector<std::uint64_t> asked(kAgents, 0);
  std::size_t heard = 0;
  const Instant end = clock.mono() + Duration::seconds(30);
  for (std::size_t turn = 0; heard < kAgents * kWords && clock.mono() < end; ++turn) {
    const Instant now = clock.mono();
    events.clear();
    peers.receive(now, events);
    heard += seen.take(events);
    events.clear();
    // One after the other, some of them while answers are on their way.
    for (const std::size_t i : {turn % kAgents, turn * 7 % kAgents}) {
      if (asked[i] < kWords) {
        ++asked[i];
        peers.send(keys[i], wire::Goodbye{}, now);
      }
    }
    peers.poll(now, events);
    seen.take(events);
    for (const auto& agent : agents) {
      agent->turn(now);
    }
    std::vector<wire::WaitFd> none;
    peers.wait(now, now + Duration::millis(1), none);
    EXPECT_TRUE(none.empty());
  }
  EXPECT_EQ(heard, kAgents * kWords);
  EXPECT_TRUE(seen.in_order);
  EXPECT_EQ(seen.lost, 0U);
}

TEST(Peers, TakeABoundedPartAtATimeAndLoseNobodyWhoseFramesWait) {
  PeerSettings settings;
  settings.listen = {socket_path("listen")};
  Instant now{1'000'000'000};
  auto peers = Peers::open(std::move(settings), now);
  ASSERT_TRUE(peers) << peers.error().message;
  const wire::SocketContext context;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 4; ++i) {
    callers.push_back(std::make_unique<Caller>(context, (*peers)->listening()[0], now));
    callers.back()->say(1'000, now);
  }
  Seen seen;
  std::size_t taken = 0;
  bool bounded = false;  // a receive() stopped while more was there
  for (int turn = 0; turn < 20'000 && taken < 4'000; ++turn) {
    std::vector<PeerEvent> events;
    (*peers)->receive(now, events);
    const std::size_t arrivals = seen.take(events);
    ASSERT_LE(arrivals, Peers::kReceivedMax);
    taken += arrivals;
    if (arrivals == Peers::kReceivedMax && taken < 4'000) {
      bounded = true;
      now = now + Duration::seconds(3600);  // the coordinator was away for an hour
    }
    events.clear();
    (*peers)->poll(now, events);
    seen.take(events);
    std::vector<wire::WaitFd> none;
    (*peers)->wait(now, now + Duration::millis(1), none);
  }
  EXPECT_EQ(taken, 4'000U);
  EXPECT_TRUE(bounded) << "frames came too slowly to test it";
  EXPECT_EQ(seen.joined, 4U);
  EXPECT_TRUE(seen.in_order);
  // An empty socket and an hour of silence: now they are gone.
  now = now + Duration::seconds(3600);
  std::vector<PeerEvent> events;
  for (int turn = 0; turn < 3; ++turn) {
    (*peers)->receive(now, events);
    (*peers)->poll(now, events);
  }
  seen.take(events);
  EXPECT_EQ(seen.lost, 4U);
}

}  // namespace
}  // namespace tutti::conduct
