// What only the direct way promises: bytes on a plain socket, connections that end in every way,
// and the kernel's receive stamps.

#include <netinet/tcp.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "tests/support/own_sockets.h"
#include "tests/support/raw_peer.h"
#include "tests/unit/bare_transport.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::RawPeer;
using support::ScriptedRequest;
using support::ScriptedServer;
using testing::HasSubstr;
using wire::Failure;

const std::string kAnswer = support::json_reply(support::chat_json("x"));
const std::string kRequestEnd = "\"p\"}";  // of every row's body

constexpr std::size_t kHalf = 4'000'000;  // of a body just below the largest

// One body in a set of its own.
class OneBody {
 public:
  explicit OneBody(const std::string& body)
      : file_(fmt::format("/tmp/tutti-one-body-{}", getpid())) {
    auto writer = data::BodySetWriter::create(file_);
    EXPECT_TRUE(writer->add(body, 6));
    EXPECT_TRUE(writer->finish());
    bodies_ = std::move(*data::BodySet::open(file_));
  }
  OneBody(const OneBody&) = delete;
  OneBody& operator=(const OneBody&) = delete;
  ~OneBody() { std::filesystem::remove(file_); }
  const data::BodySet* set() const { return &bodies_; }

 private:
  std::string file_;
  data::BodySet bodies_;
};

TEST(EngineDirect, ALargeBodyGoesOutInManyWritesAndArrivesWhole) {
  const std::string half(kHalf, 'x');
  const OneBody bodies("{\"p\":\"" + half + half + kRequestEnd);
  std::string got;
  const RawPeer peer(
      [&got](int fd, std::size_t) {
        std::this_thread::sleep_for(30ms);  // the socket is full by now
        got = RawPeer::read_until(fd, kRequestEnd);
        RawPeer::write_all(fd, kAnswer);
        RawPeer::read_until(fd, "never");
      },
      16'384);
  EngineRig rig({peer.url()}, false);
  rig.config.bodies = bodies.set();
  auto command = EngineRig::commands(0, 1);
  command[0].salted = true;
  command[0].salt = 0x1234;
  rig.arm(base::Pacing::kClosedLoop, 1);
  ASSERT_EQ(rig.engine().issue(0, command), 1U);
  ASSERT_TRUE(rig.pump_records(1));
  EXPECT_EQ(rig.records[0].outcome, wire::Outcome::kOk) << rig.records[0].error_message;
  EXPECT_EQ(rig.records[0].bytes_up, got.size());
  const std::size_t salt = got.find("[0000000000001234] ");
  ASSERT_NE(salt, std::string::npos);
  const std::string body = got.substr(got.find("\r\n\r\n") + 4);
  EXPECT_EQ(body.size(), 2 * kHalf + 6 + kRequestEnd.size() + 19);
  EXPECT_EQ(static_cast<std::size_t>(std::count(body.begin(), body.end(), 'x')), 2 * kHalf);
  rig.engine().stop();
}

TEST(EngineDirect, AnAnswerDuringTheUploadIsTheAnswer) {
  const OneBody bodies("{\"p\":\"" + std::string(2 * kHalf, 'x') + kRequestEnd);
  const RawPeer peer(
      [](int fd, std::size_t) {
        RawPeer::read_until(fd, "\r\n\r\n");
        RawPeer::write_all(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nwow!");
        std::this_thread::sleep_for(50ms);
      },
      16'384);
  EngineRig rig({peer.url()}, false);
  rig.config.bodies = bodies.set();
  for (base::Seq seq = 0; seq < 3; ++seq) {
    rig.arm(base::Pacing::kClosedLoop, 1);
    auto command = EngineRig::commands(seq, 1);
    command[0].sample = 0;
    ASSERT_EQ(rig.engine().issue(0, command), 1U);
    ASSERT_TRUE(rig.pump_records(seq + 1));
    EXPECT_EQ(rig.records[seq].http_status, 413) << rig.records[seq].error_message;
    EXPECT_THAT(rig.records[seq].error_message, HasSubstr("wow!"));
    EXPECT_FALSE(rig.records[seq].connection_reused);  // half a request lies in it
  }
  rig.engine().stop();
}

TEST(EngineDirect, AKeptConnectionThatTookTheRequestAndClosedIsAFailure) {
  ScriptedServer server([](const ScriptedRequest& request) {
    return request.on_connection == 0 ? support::stream_script({"a"})
                                      : support::Script{support::close_now()};
  });
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kDirect;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(rig.records[1].failure, Failure::kReset);
  EXPECT_THAT(rig.records[1].error_message, HasSubstr("without a reply"));
  EXPECT_TRUE(rig.records[1].connection_reused);
  EXPECT_FALSE(rig.records[1].resent);
  EXPECT_EQ(server.requests(), 2U);  // the server worked on it: it is not asked to do so again
}

// The next query is there already and goes out within microseconds of the answer: too soon for
// another look at the connection, whose end came in the same packet as the answer.
TEST(EngineDirect, AConnectionWhoseEndCameWithTheAnswerIsNotUsedAgain) {
  const RawPeer peer([](int fd, std::size_t) {
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_CORK, &one, sizeof one);
    RawPeer::read_until(fd, kRequestEnd);
    RawPeer::write_all(fd, kAnswer);
  });
  EngineRig rig({peer.url()}, false);
  rig.config.target.way = base::Way::kDirect;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(20);
  ASSERT_TRUE(rig.pump_records(20));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    EXPECT_FALSE(record.connection_reused);
  }
  EXPECT_EQ(peer.connections(), 20U);
  rig.engine().stop();
}

TEST(EngineDirect, AQueryOfWhichNotOneByteWasTakenIsSentAgainOnceOnAFreshConnection) {
  std::vector<sys::Fd> held;  // no FIN: the kept connection looks alive
  const RawPeer peer([&held](int fd, std::size_t) {
    RawPeer::read_until(fd, kRequestEnd);
    RawPeer::write_all(fd, kAnswer);
    held.emplace_back(dup(fd));
  });
  EngineRig rig({peer.url()}, false);
  rig.config.target.way = base::Way::kDirect;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(1);
  ASSERT_TRUE(rig.pump_records(1));
  const std::vector<int> ours = support::sockets_to(peer.port());
  ASSERT_EQ(ours.size(), 1U);
  shutdown(ours[0], SHUT_WR);  // from now on it takes nothing
  const Instant before = rig.clock.mono();
  rig.issue(1, 1);
  ASSERT_TRUE(rig.pump_records(2));
  const wire::Record& record = rig.records[1];
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_TRUE(record.resent);
  EXPECT_FALSE(record.connection_reused);
  EXPECT_GT(record.connect_us, 0U);
  EXPECT_GE(record.sent_at, before);
  EXPECT_LE(record.sent_at, record.first_byte_at);
  EXPECT_EQ(peer.connections(), 2U);
  rig.engine().stop();
}

// The server closes right after its answer, a little later each time, into the client's next
// request. Whatever wins, no query reaches the server twice and none is lost.
TEST(EngineDirect, TheKeepAliveRaceNeverDoublesAQuery) {
  ScriptedServer server([](const ScriptedRequest& request) {
    auto script = support::stream_script({"a"});
    script.push_back(support::pause_for(std::chrono::microseconds(request.number * 3 % 150)));
    script.push_back(request.number % 2 == 0 ? support::close_now() : support::reset_now());
    return script;
  });
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kDirect;
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(EngineRig::kRows - 1);
  ASSERT_TRUE(rig.pump_records(EngineRig::kRows - 1));
  std::size_t good = 0;
  for (const auto& record : rig.records) {
    good += record.outcome == wire::Outcome::kOk ? 1U : 0U;
    EXPECT_TRUE(record.outcome == wire::Outcome::kOk || record.failure == Failure::kReset)
        << record.error_message;
  }
  EXPECT_GT(good, 0U);
  std::set<std::string> bodies;
  for (const auto& request : server.seen()) {
    EXPECT_TRUE(bodies.insert(request.body).second) << request.body;
  }
}

TEST(EngineDirect, APeerThatClosesAfterItsAnswerCostsNoQuery) {
  std::atomic<int> how{0};
  const RawPeer peer([&how](int fd, std::size_t) {
    RawPeer::read_until(fd, kRequestEnd);
    switch (how++ % 4) {
      case 0:  // a legal answer, then the end of it all
        RawPeer::write_all(fd, kAnswer);
        break;
      case 1:  // half of it
        RawPeer::write_all(fd, kAnswer);
        shutdown(fd, SHUT_WR);
        RawPeer::read_until(fd, "never");
        break;
      case 2:  // more than was asked for
        RawPeer::write_all(fd, kAnswer + "HTTP/1.1 200 OK\r\n");
        RawPeer::read_until(fd, "never");
        break;
      default:  // the same, late
        RawPeer::write_all(fd, kAnswer);
        std::this_thread::sleep_for(10ms);
        RawPeer::write_all(fd, "\r\n");
        RawPeer::read_until(fd, "never");
    }
  });
  EngineRig rig({peer.url()}, false);
  rig.arm(base::Pacing::kClosedLoop, 1);
  for (base::Seq seq = 0; seq < 8; ++seq) {
    rig.issue(1, seq);
    ASSERT_TRUE(rig.pump_records(seq + 1));
    EXPECT_EQ(rig.records[seq].outcome, wire::Outcome::kOk) << rig.records[seq].error_message;
    EXPECT_FALSE(rig.records[seq].connection_reused);
    EXPECT_FALSE(rig.records[seq].resent);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(peer.connections(), 8U);
  rig.engine().stop();
}

TEST(EngineDirect, EveryCutEndSaysWhere) {
  const std::pair<const char*, const char*> cuts[] = {
      {"", "without a reply"},
      {"HTTP/1.1 200 OK\r\nContent-", "inside the reply's header"},
      {"HTTP/1.1 100 Continue\r\n\r\n", "inside the reply's header"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "inside the reply's body"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:",
       "inside the reply's body"},
  };
  for (const auto& [bytes, says] : cuts) {
    const std::string answer = bytes;
    const RawPeer peer([&answer](int fd, std::size_t) {
      RawPeer::read_until(fd, kRequestEnd);
      RawPeer::write_all(fd, answer);
    });
    EngineRig rig({peer.url()});
    const wire::Record record = rig.one();
    EXPECT_EQ(record.failure, Failure::kReset);
    EXPECT_THAT(record.error_message, HasSubstr(says));
    rig.engine().stop();
  }
}

TEST(EngineDirect, WhatIsNotHttpIsShownAndEndsAtOnce) {
  const RawPeer peer([](int fd, std::size_t) {
    RawPeer::read_until(fd, kRequestEnd);
    RawPeer::write_all(fd, "S");  // no line end, no close
    RawPeer::read_until(fd, "never");
  });
  EngineRig rig({peer.url()});
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kBadReply);
  EXPECT_THAT(record.error_message, HasSubstr("byte 0 of the reply is 0x53"));
  rig.engine().stop();
}

TEST(EngineDirect, AHundredContinueAndTrailersAreRead) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes("HTTP/1.1 100 Continue\r\n\r\n"),
                           support::send_bytes(support::stream_head()),
                           support::send_bytes(support::http_chunk(support::content_event("a") +
                                                                   support::finish_events())),
                           support::send_bytes("0\r\nServer-Timing: 1\r\n"),
                           support::pause_for(10ms),
                           support::send_bytes("\r\n")};
  });
  EngineRig rig({server.url()});
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(rig.records[0].outcome, wire::Outcome::kOk) << rig.records[0].error_message;
  EXPECT_GT(rig.records[0].done_at - rig.records[0].sent_at, Duration::millis(9));
  EXPECT_TRUE(rig.records[1].connection_reused);
}

TEST(EngineDirect, ANameIsLookedUpByTheFirstQueryAndTheRestWaitForIt) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({fmt::format("http://localhost:{}/v1/chat/completions", server.port())});
  rig.config.target.way = base::Way::kDirect;
  rig.config.slots = 4;
  rig.arm(base::Pacing::kClosedLoop, 4);
  rig.issue(12);
  ASSERT_TRUE(rig.pump_records(12));
  std::size_t looked_up = 0;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    looked_up += record.dns_us > 0 ? 1U : 0U;
  }
  EXPECT_EQ(looked_up, 4U);
  EXPECT_EQ(server.connections(), 5U);  // the probe's and four
  EXPECT_THAT(server.seen().at(0).head,
              HasSubstr(fmt::format("Host: localhost:{}\r\n", server.port())));
}

TEST(EngineDirect, QueriesThatWaitForANameCanTimeOutAndBeCancelled) {
  EngineRig rig({"http://no-such-host.invalid:80/x"});
  rig.config.slots = 64;
  rig.config.target.request_timeout = Duration::nanos(1);
  rig.arm(base::Pacing::kBurst, 64);
  rig.issue(64);
  ASSERT_TRUE(rig.pump_records(64));
  rig.issue(32, 64);
  rig.engine().abort("enough");
  ASSERT_TRUE(rig.pump([&] { return rig.engine().outstanding(0) == 0; }));
}

// ---- stamps ----------------------------------------------------------------------------------

// The worker comes to its socket late; the record says when the bytes came.
TEST(EngineDirect, AStampSaysWhenTheBytesCameAndNotWhenTheyWereRead) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{
        support::send_bytes(support::stream_head()),
        support::send_bytes(support::http_chunk(support::content_event("a"))),
        support::pause_for(150ms),
        support::send_bytes(support::http_chunk(support::content_event("b")) +
                            support::http_chunk(support::finish_events()) + support::last_chunk())};
  });
  EngineRig rig({server.url()});
  rig.config.target.stamp_every_chunk = true;
  BareTransport transport(rig, 40ms);
  const wire::Record* record = transport.one();
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->outcome, wire::Outcome::kOk) << record->error_message;
  ASSERT_EQ(record->chunk_at.size(), 1U);
  ASSERT_GE(transport.read_at().size(), 2U);
  EXPECT_LE(record->sent_at, record->first_byte_at);
  EXPECT_LE(record->first_byte_at, record->first_token_at);
  EXPECT_LE(record->first_token_at, record->chunk_at[0]);
  EXPECT_LE(record->chunk_at[0], record->done_at);
  if (transport.gauges().reads_unstamped.load() > 0) {
    GTEST_SKIP() << "this kernel gives no receive stamps";
  }
  EXPECT_LE(record->first_byte_at, transport.read_at().front() - Duration::millis(35));
  EXPECT_LE(record->done_at, transport.read_at().back() - Duration::millis(35));
}

// ---- what one read leaves --------------------------------------------------------------------

// Bytes and FIN lie there together when the read comes. The next query follows at once, so that it
// must be the read that tells: it goes out on a new connection, and nothing was sent twice.
TEST(EngineDirect, AReadThatLeavesAnEndKeepsNoConnection) {
  ScriptedServer server([](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply(support::chat_json("a"))),
                           support::close_now()};
  });
  EngineRig rig({server.url()});
  BareTransport transport(rig, 30ms);  // until the end has come too
  for (std::size_t n = 1; n <= 3; ++n) {
    const wire::Record* record = transport.one();
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->outcome, wire::Outcome::kOk) << record->error_message;
    EXPECT_FALSE(record->connection_reused);
    EXPECT_FALSE(record->resent);
  }
  EXPECT_EQ(server.connections(), 3U);
}

// Bytes and what ends them are told of once, and a read takes the bytes alone: nothing else will
// come to make the rest known.
TEST(EngineDirect, AnEndBehindBytesIsSeenThoughItWasToldOfWithThem) {
  const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{";
  for (const bool reset : {false, true}) {
    ScriptedServer server([&](const ScriptedRequest&) {
      return support::Script{support::send_bytes(half),
                             reset ? support::reset_now() : support::close_now()};
    });
    EngineRig rig({server.url()});
    BareTransport transport(rig, 30ms);
    const wire::Record* record = transport.one();
    ASSERT_NE(record, nullptr) << (reset ? "RST" : "FIN");
    EXPECT_EQ(record->failure, Failure::kReset);
    EXPECT_GT(record->bytes_down, 0U) << "the bytes were read before the end";
  }
}

// Larger than the buffer of one read, and each time more lies there than that.
TEST(EngineDirect, WhatALargeReplyLeavesBehindIsReadToo) {
  const std::string text(6'000'000, 'x');
  ScriptedServer server([&](const ScriptedRequest&) {
    return support::Script{support::send_bytes(support::json_reply(support::chat_json(text)))};
  });
  EngineRig rig({server.url()}, false);
  BareTransport transport(rig, 5ms);
  for (int n = 0; n < 2; ++n) {
    const wire::Record* record = transport.one();
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->outcome, wire::Outcome::kOk) << record->error_message;
    EXPECT_EQ(record->output.content_first.size(), text.size());
  }
  EXPECT_EQ(server.connections(), 1U);
}

// ---- a handful of replies --------------------------------------------------------------------

// All lie there when the first is read, and are received before any is looked into: small ones side
// by side in one buffer, and large ones of which it does not hold all at once.
TEST(EngineDirect, RepliesReceivedTogetherAreEachReadWhole) {
  constexpr std::size_t kReplies = BareTransport::kSlots;
  for (const std::size_t large : {std::size_t{100}, std::size_t{40'000}, std::size_t{90'000}}) {
    const auto text = [large](std::size_t n) {
      return std::string(n % 2 == 0 ? 100 + n : large + n, static_cast<char>('a' + n));
    };
    std::atomic<std::size_t> asked{0};
    ScriptedServer server([&](const ScriptedRequest&) {
      const std::string reply = support::json_reply(support::chat_json(text(asked++ % kReplies)));
      return support::Script{support::send_bytes(reply)};
    });
    EngineRig rig({server.url()}, false);
    BareTransport transport(rig, 30ms);
    for (std::size_t round = 0; round < 2; ++round) {
      transport.start(kReplies);
      ASSERT_TRUE(transport.pump((round + 1) * kReplies));
      std::multiset<std::string> came;
      std::multiset<std::string> sent;
      for (std::size_t n = 0; n < kReplies; ++n) {
        const wire::Record& record = transport.records()[round * kReplies + n];
        EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
        came.insert(record.output.content_first);
        sent.insert(text(n));
      }
      EXPECT_EQ(came, sent) << "of " << large << " bytes, round " << round;
    }
    EXPECT_EQ(server.connections(), kReplies);
  }
}

class SteppedClock final : public base::Clock {
 public:
  Instant mono() const override { return clock_.mono(); }
  std::int64_t wall_unix_ns() const override { return clock_.wall_unix_ns() + step.ns; }
  Duration step{};

 private:
  base::SystemClock clock_;
};

// The clocks are compared once for all replies that were received together, after the last and
// before the first stamp is believed. Mapped by what was known before the step, stamps of after a
// step back would lie before the request.
TEST(EngineDirect, AStepOfWallTimeBendsNoStampOfAHandful) {
  constexpr std::size_t kReplies = BareTransport::kSlots;
  for (const int ms : {-100, 100}) {
    ScriptedServer server([](const ScriptedRequest&) {
      return support::Script{support::pause_for(20ms), support::send_bytes(kAnswer)};
    });
    EngineRig rig({server.url()}, false);
    SteppedClock clock;
    clock.step = Duration::millis(ms);
    BareTransport transport(rig, 0ms, clock);
    transport.start(kReplies);
    ASSERT_TRUE(transport.pump(kReplies));
    clock.step = {};
    const std::uint64_t unstamped = transport.gauges().reads_unstamped;
    transport.start(kReplies);
    ASSERT_TRUE(transport.pump(2 * kReplies));
    EXPECT_GT(transport.gauges().reads_unstamped, unstamped) << ms;
    for (std::size_t n = kReplies; n < 2 * kReplies; ++n) {
      const wire::Record& record = transport.records()[n];
      EXPECT_GE(record.first_byte_at - record.sent_at, Duration::millis(18)) << ms;
      EXPECT_LE(record.done_at, clock.mono()) << ms;
    }
  }
}

TEST(EngineDirect, ReadLagIsAGaugeAndEveryReadHadItsStamp) {
  ScriptedServer server(streams({"a", "b", "c"}, 1ms));
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kDirect;
  rig.config.slots = 4;
  rig.config.target.stamp_every_chunk = true;
  rig.arm(base::Pacing::kClosedLoop, 4);
  rig.issue(80);
  ASSERT_TRUE(rig.pump_records(80));
  for (const auto& record : rig.records) {
    EXPECT_LE(record.sent_at, record.first_byte_at);
    EXPECT_LE(record.first_byte_at, record.first_token_at);
    Instant before = record.first_token_at;
    for (const Instant at : record.chunk_at) {
      EXPECT_GE(at, before);
      before = at;
    }
    EXPECT_GE(record.done_at, before);
  }
  const wire::Health health = rig.engine().health(rig.clock.mono());
  if (health.reads_unstamped > 0) {
    GTEST_SKIP() << "this kernel gave " << health.reads_unstamped << " reads no receive stamp";
  }
  EXPECT_GT(health.read_lag_p50.ns, 0);
  EXPECT_GE(health.read_lag_p99, health.read_lag_p50);
  EXPECT_EQ(rig.engine().health(rig.clock.mono()).read_lag_p99.ns, 0);  // an interval's
}

TEST(EngineDirect, MultiHasNoReadLag) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.way = base::Way::kMulti;
  rig.one();
  const wire::Health health = rig.engine().health(rig.clock.mono());
  EXPECT_EQ(health.read_lag_p99.ns, 0);
  EXPECT_EQ(health.reads_unstamped, 0U);
}

}  // namespace
}  // namespace tutti::drive
