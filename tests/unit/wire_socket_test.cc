// Sockets over ipc and tcp loopback: messages go both ways, peers come back, keys decide who is let
// in, nothing blocks, and what may not leave the host does not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include "common/base/time.h"
#include "common/wire/envelope.h"
#include "common/wire/sockets.h"

namespace tutti::wire {
namespace {

using base::Duration;
using testing::HasSubstr;

constexpr int kMessages = 20'000;

// Waits on real sockets, for at most ten seconds, until `done` says so.
bool eventually(std::vector<Socket*> sockets, const std::function<bool()>& done) {
  const base::SystemClock clock;
  const base::Instant end = clock.mono() + Duration::seconds(10);
  while (!done()) {
    if (clock.mono() > end) {
      return false;
    }
    wait_input(sockets, {}, Duration::millis(20));
  }
  return true;
}

bool receives(DialSocket& socket, const std::string& wanted) {
  std::string got;
  return eventually({&socket}, [&] { return socket.receive(got); }) && got == wanted;
}

bool receives(ListenSocket& socket, const std::string& wanted, std::string& peer) {
  std::string got;
  return eventually({&socket}, [&] { return socket.receive(peer, got); }) && got == wanted;
}

ListenSocket listen(const SocketContext& context, const std::string& endpoint,
                    const SocketOptions& options = {}) {
  auto socket = ListenSocket::open(context, endpoint, options);
  EXPECT_TRUE(socket.has_value()) << (socket ? "" : socket.error().message);
  return std::move(socket.value());
}

DialSocket dial(const SocketContext& context, const std::string& endpoint,
                const SocketOptions& options = {}) {
  auto socket = DialSocket::open(context, endpoint, options);
  EXPECT_TRUE(socket.has_value()) << (socket ? "" : socket.error().message);
  return std::move(socket.value());
}

std::string ipc_endpoint() {
  static int count = 0;
  return "ipc:///tmp/tutti-socket-test-" + std::to_string(::getpid()) + "-" +
         std::to_string(++count);
}

class WireSocketOver : public testing::TestWithParam<const char*> {
 protected:
  static std::string endpoint() {
    return std::string(GetParam()) == "ipc" ? ipc_endpoint() : GetParam();
  }
};

INSTANTIATE_TEST_SUITE_P(Transports, WireSocketOver,
                         testing::Values("ipc", "tcp://127.0.0.1:*", "tcp://[::1]:*"));

TEST_P(WireSocketOver, MessagesGoBothWays) {
  const SocketContext context;
  ListenSocket listener = listen(context, endpoint());
  EXPECT_EQ(listener.endpoint().find('*'), std::string::npos);
  DialSocket a = dial(context, listener.endpoint());
  DialSocket b = dial(context, listener.endpoint());
  std::string peer_a;
  std::string peer_b;
  EXPECT_EQ(a.send("from a"), SendResult::kSent);
  ASSERT_TRUE(receives(listener, "from a", peer_a));
  EXPECT_EQ(b.send(""), SendResult::kSent);
  ASSERT_TRUE(receives(listener, "", peer_b));
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(listener.send(peer_b, "to b"), SendResult::kSent);
  EXPECT_EQ(listener.send(peer_a, large), SendResult::kSent);
  EXPECT_TRUE(receives(a, large));
  EXPECT_TRUE(receives(b, "to b"));
  EXPECT_TRUE(a.connected());
  EXPECT_EQ(a.trouble(), "");
  std::string bytes;
  EXPECT_FALSE(listener.receive(peer_a, bytes));
}

TEST_P(WireSocketOver, ThousandsOfMessagesKeepTheirOrderAndNoWakeUpIsMissed) {
  const SocketContext context;
  ListenSocket listener = listen(context, endpoint());
  std::thread dialler([&context, where = listener.endpoint()] {
    DialSocket socket = dial(context, where);
    std::string bytes;
    int echoed = 0;
    int sent = 0;
    eventually({&socket}, [&] {
      while (sent < kMessages && sent - echoed < 500 &&
             socket.send(std::to_string(sent)) == SendResult::kSent) {
        ++sent;
      }
      while (socket.receive(bytes)) {
        EXPECT_EQ(bytes, std::to_string(echoed));
        ++echoed;
      }
      return echoed == kMessages;
    });
    EXPECT_EQ(echoed, kMessages);
  });
  int seen = 0;
  std::string peer;
  std::string bytes;
  EXPECT_TRUE(eventually({&listener}, [&] {
    while (listener.receive(peer, bytes)) {
      ++seen;
      EXPECT_EQ(listener.send(peer, bytes), SendResult::kSent);
    }
    return seen == kMessages;
  }));
  dialler.join();
}

TEST_P(WireSocketOver, ADiallerReachesAListenerThatComesLaterAndOneThatComesBack) {
  const SocketContext context;
  std::string where;
  {
    const SocketContext passing;  // its end waits until the address is free again
    where = listen(passing, endpoint()).endpoint();
  }
  DialSocket socket = dial(context, where);
  EXPECT_EQ(socket.send("early"), SendResult::kSent) << "kept until there is a connection";
  std::string bytes;
  ASSERT_TRUE(eventually({&socket}, [&] {
    socket.receive(bytes);
    return !socket.trouble().empty();
  }));
  EXPECT_THAT(socket.trouble(), HasSubstr(where));
  EXPECT_FALSE(socket.connected());
  std::string first_peer;
  {
    const SocketContext passing;
    ListenSocket listener = listen(passing, where);
    ASSERT_TRUE(receives(listener, "early", first_peer));
    EXPECT_TRUE(socket.connected());
  }
  ASSERT_TRUE(eventually({&socket}, [&] { return !socket.connected(); }));
  ListenSocket again = listen(context, where);
  ASSERT_TRUE(eventually({&socket}, [&] { return socket.connected(); }));
  socket.send("back");
  std::string second_peer;
  ASSERT_TRUE(receives(again, "back", second_peer));
  EXPECT_EQ(again.send(second_peer, "welcome back"), SendResult::kSent);
  EXPECT_TRUE(receives(socket, "welcome back"));
}

TEST_P(WireSocketOver, APeerThatIsGoneIsReportedNotWaitedFor) {
  const SocketContext context;
  ListenSocket listener = listen(context, endpoint());
  std::string peer;
  {
    DialSocket socket = dial(context, listener.endpoint());
    socket.send("hi");
    ASSERT_TRUE(receives(listener, "hi", peer));
  }
  EXPECT_TRUE(
      eventually({&listener}, [&] { return listener.send(peer, "?") == SendResult::kNoPeer; }));
  EXPECT_EQ(listener.send("nobody", "?"), SendResult::kNoPeer);
}

TEST(WireSocket, AnIpcListenerLeavesNoFileButRespectsASuccessors) {
  const SocketContext context;
  const std::string endpoint = ipc_endpoint();
  const std::string file = endpoint.substr(6);
  {
    const ListenSocket listener = listen(context, endpoint);
    EXPECT_EQ(::access(file.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(file.c_str(), F_OK), 0);
  auto first = std::make_unique<ListenSocket>(listen(context, endpoint));
  const ListenSocket second = listen(context, endpoint);  // takes the place over
  first.reset();
  EXPECT_EQ(::access(file.c_str(), F_OK), 0);
}

TEST(WireSocket, AFullQueueIsReportedNotWaitedFor) {
  const SocketContext context;
  SocketOptions small;
  small.queue_max = 4;
  small.linger = Duration{};
  DialSocket socket = dial(context, ipc_endpoint(), small);  // nobody listens
  int taken = 0;
  while (socket.send("x") == SendResult::kSent && taken < 100) {
    ++taken;
  }
  EXPECT_EQ(taken, 4);

  ListenSocket listener = listen(context, ipc_endpoint(), small);
  DialSocket deaf = dial(context, listener.endpoint(), small);
  deaf.send("hi");
  std::string peer;
  ASSERT_TRUE(receives(listener, "hi", peer));
  SendResult last = SendResult::kSent;
  const std::string large(1'000'000, 'x');
  for (int i = 0; i < 200 && last == SendResult::kSent; ++i) {
    last = listener.send(peer, large);
  }
  EXPECT_EQ(last, SendResult::kFull);
}

TEST(WireSocket, AMessageLargerThanAFrameMayBeClosesTheConnection) {
  const SocketContext context;
  ListenSocket listener = listen(context, ipc_endpoint());
  DialSocket socket = dial(context, listener.endpoint());
  socket.send(std::string(kEnvelopeBytesMax + 1, 'x'));
  EXPECT_TRUE(eventually({&socket, &listener},
                         [&] { return !socket.connected() && !socket.trouble().empty(); }));
  std::string peer;
  std::string bytes;
  EXPECT_FALSE(listener.receive(peer, bytes));
}

TEST(WireSocket, KeysDecideWhoIsLetIn) {
  SocketContext context;
  SocketOptions ours;
  ours.keys = fresh_key_pair();
  ListenSocket listener = listen(context, "tcp://127.0.0.1:*", ours);
  SocketOptions friendly;
  friendly.keys = fresh_key_pair();
  friendly.listener_key = ours.keys->public_key;
  SocketOptions stranger = friendly;
  stranger.keys = fresh_key_pair();

  const SocketContext agents;
  DialSocket stranger_socket = dial(agents, listener.endpoint(), stranger);
  stranger_socket.send("let me in");
  ASSERT_TRUE(eventually({&stranger_socket, &listener}, [&] {
    return stranger_socket.trouble().find("allow-list") != std::string::npos;
  })) << stranger_socket.trouble();
  EXPECT_GE(context.denied(), 1u);
  EXPECT_THAT(context.last_denied(), HasSubstr(stranger.keys->public_key));

  context.allow({friendly.keys->public_key});
  DialSocket friend_socket = dial(agents, listener.endpoint(), friendly);
  friend_socket.send("hello");
  std::string peer;
  ASSERT_TRUE(receives(listener, "hello", peer));
  EXPECT_EQ(listener.send(peer, "hello yourself"), SendResult::kSent);
  EXPECT_TRUE(receives(friend_socket, "hello yourself"));
  std::string bytes;
  EXPECT_FALSE(listener.receive(peer, bytes)) << "the stranger's message never came through";
}

TEST(WireSocket, ADiallerThatExpectsAnotherKeyOrNoneDoesNotConnect) {
  SocketContext context;
  SocketOptions ours;
  ours.keys = fresh_key_pair();
  SocketOptions misled;
  misled.keys = fresh_key_pair();
  misled.listener_key = fresh_key_pair().public_key;  // an impostor listens
  context.allow({misled.keys->public_key});
  ListenSocket listener = listen(context, "tcp://127.0.0.1:*", ours);
  DialSocket wrong = dial(context, listener.endpoint(), misled);
  DialSocket plain = dial(context, listener.endpoint());
  wrong.send("secret");
  plain.send("plain");
  EXPECT_TRUE(eventually({&wrong, &plain},
                         [&] { return !wrong.trouble().empty() && !plain.trouble().empty(); }));
  std::string peer;
  std::string bytes;
  EXPECT_FALSE(listener.receive(peer, bytes));
  EXPECT_FALSE(wrong.connected());
  EXPECT_FALSE(plain.connected());
}

TEST(WireSocket, NothingLeavesTheHostWithoutKeysUnlessInsecure) {
  const SocketContext context;
  for (const char* endpoint :
       {"tcp://*:0", "tcp://0.0.0.0:*", "tcp://10.1.2.3:5000", "tcp://node7:1"}) {
    const auto listener = ListenSocket::open(context, endpoint, {});
    ASSERT_FALSE(listener.has_value()) << endpoint;
    EXPECT_THAT(listener.error().message, HasSubstr("--insecure"));
    EXPECT_FALSE(DialSocket::open(context, endpoint, {}).has_value()) << endpoint;
  }
  SocketOptions insecure;
  insecure.insecure = true;
  EXPECT_TRUE(ListenSocket::open(context, "tcp://0.0.0.0:*", insecure).has_value());
  SocketOptions keyed;
  keyed.keys = fresh_key_pair();
  EXPECT_TRUE(ListenSocket::open(context, "tcp://0.0.0.0:*", keyed).has_value());
  EXPECT_FALSE(DialSocket::open(context, "tcp://10.1.2.3:5000", keyed).has_value())
      << "without the listener's key";
}

TEST(WireSocket, LoopbackIsToldFromNamesThatOnlyLookLikeIt) {
  for (const char* local :
       {"ipc:///run/x", "tcp://127.0.0.1:80", "tcp://127.9.8.7:*", "tcp://[::1]:80",
        "tcp://localhost:80", "tcp://[::ffff:127.0.0.1]:80"}) {
    EXPECT_TRUE(is_loopback_endpoint(local)) << local;
  }
  for (const char* remote :
       {"tcp://127.0.0.1.example.com:80", "tcp://localhost.example.com:80", "tcp://*:80",
        "tcp://[::]:80", "tcp://0.0.0.0:80", "tcp://128.0.0.1:80", "tcp://[::2]:80", "127.0.0.1:80",
        "tcp://", "", "tcp://[::ffff:128.0.0.1]:80", "pgm://127.0.0.1:80"}) {
    EXPECT_FALSE(is_loopback_endpoint(remote)) << remote;
  }
}

TEST(WireSocket, ImpossibleEndpointsAreErrorsThatNameThem) {
  const SocketContext context;
  for (const char* endpoint :
       {"udp://127.0.0.1:1", "127.0.0.1:1", "tcp://127.0.0.1", "tcp://127.0.0.1:99999",
        "tcp://127.0.0.1:x", "tcp://:80", "ipc:///no/such/folder/socket", ""}) {
    const auto socket = ListenSocket::open(context, endpoint, {});
    ASSERT_FALSE(socket.has_value()) << endpoint;
    EXPECT_THAT(socket.error().message, HasSubstr(endpoint));
  }
  ListenSocket first = listen(context, "tcp://127.0.0.1:*");
  EXPECT_THAT(ListenSocket::open(context, first.endpoint(), {}).error().message,
              HasSubstr("in use"));
  EXPECT_FALSE(DialSocket::open(context, "tcp://127.0.0.1:*", {}).has_value());
  EXPECT_FALSE(DialSocket::open(context, "tcp://127.0.0.1:0", {}).has_value());
}

// A send may take in the word that something came, and the descriptor never tells of it again. A
// side that asks before it receives must not sleep on that: each wait here is as long as the test.
TEST(WireSocket, WhoAsksBeforeReceivingMissesNothing) {
  constexpr int kRounds = 3000;
  const SocketContext context;
  ListenSocket listener = listen(context, ipc_endpoint());
  DialSocket dialler = dial(context, listener.endpoint());
  dialler.send("first");
  std::string peer;
  std::string bytes;
  ASSERT_TRUE(receives(listener, "first", peer));
  const base::SystemClock clock;
  const base::Instant end = clock.mono() + Duration::seconds(10);
  std::array<Socket*, 2> sockets = {&listener, &dialler};
  int up = 0;
  int down = 0;
  int in_vain = 0;
  for (int sent = 0; up < kRounds || down < kRounds;) {
    ASSERT_LT(clock.mono(), end) << up << " up, " << down << " down of " << sent;
    if (sent < kRounds && sent - std::min(up, down) < 8) {
      ASSERT_EQ(dialler.send("up"), SendResult::kSent);
      ASSERT_EQ(listener.send(peer, "down"), SendResult::kSent);
      ++sent;
    } else {
      wait_input(sockets, {}, Duration::seconds(10));
    }
    while (listener.may_have_input() && listener.receive(peer, bytes)) {
      ++up;
    }
    while (dialler.may_have_input() && dialler.receive(bytes)) {
      ++down;
    }
    in_vain += listener.may_have_input() || dialler.may_have_input() ? 1 : 0;
  }
  EXPECT_EQ(in_vain, 0) << "an empty socket knows that it is";
}

TEST(WireSocket, WaitInputAlsoWatchesDescriptorsAndKeepsItsTime) {
  const SocketContext context;
  ListenSocket listener = listen(context, ipc_endpoint());
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::array<WaitFd, 1> fds = {WaitFd{pipe[0], true}};
  std::array<Socket*, 1> sockets = {&listener};
  const base::SystemClock clock;
  const base::Instant before = clock.mono();
  EXPECT_FALSE(wait_input(sockets, fds, Duration::millis(30)));
  EXPECT_GE(clock.mono() - before, Duration::millis(29));
  EXPECT_FALSE(fds[0].readable);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  EXPECT_TRUE(wait_input(sockets, fds, Duration::seconds(10)));
  EXPECT_TRUE(fds[0].readable);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace tutti::wire
