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
