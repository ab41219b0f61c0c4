// HTTP/2 over libcurl: streams share connections, as many as are allowed and no more; what a peer
// does to a stream or to a connection is named; another version is a failure. Against nghttpx where
// it is installed, and against frames written here.

#include <fstream>
#include <iterator>

#include "tests/support/http2_front.h"
#include "tests/support/own_sockets.h"
#include "tests/support/raw_peer.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::Http2Front;
using support::RawPeer;
using support::ScriptedServer;
using testing::HasSubstr;
using wire::Failure;

#define TUTTI_NEEDS_NGHTTPX()                                           \
  if (!Http2Front::is_there()) {                                        \
    GTEST_SKIP() << "nghttpx is not installed (package nghttp2-proxy)"; \
  }                                                                     \
  static_assert(true, "")

void speak_two(EngineRig& rig, std::uint32_t streams) {
  rig.config.target.way = base::Way::kMulti;
  rig.config.target.streams_max = streams;
}

std::size_t fine(const EngineRig& rig) {
  std::size_t count = 0;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    count += record.outcome == wire::Outcome::kOk ? 1U : 0U;
  }
  return count;
}

// ---- a real server ---------------------------------------------------------------------------

TEST(EngineHttp2, StreamsShareAsFewConnectionsAsHoldThem) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server(streams({"a", "b"}, 2ms));
  const Http2Front front(server.port());
  EngineRig rig({front.url()});
  speak_two(rig, 10);
  rig.config.slots = 50;
  rig.arm(base::Pacing::kClosedLoop, 50);
  rig.issue(500);
  ASSERT_TRUE(rig.pump_records(500));
  EXPECT_EQ(fine(rig), 500U);
  EXPECT_EQ(support::sockets_to(front.port()).size(), 5U);
  std::size_t openers = 0;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.content_events, 2U);
    EXPECT_EQ(record.connection_reused, record.connect_us == 0);
    openers += record.connection_reused ? 0U : 1U;
  }
  EXPECT_EQ(openers, 5U);
  EXPECT_GT(server.in_flight_max(), 10U);
}

TEST(EngineHttp2, OneStreamAConnectionIsAConnectionASlot) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server(streams({"a"}, 1ms));
  const Http2Front front(server.port());
  EngineRig rig({front.url()});
  speak_two(rig, 1);
  rig.config.slots = 8;
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(80);
  ASSERT_TRUE(rig.pump_records(80));
  EXPECT_EQ(fine(rig), 80U);
  EXPECT_EQ(support::sockets_to(front.port()).size(), 8U);
}

TEST(EngineHttp2, APeerThatTakesFewerStreamsGetsMoreConnections) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server(streams({"a"}, 2ms));
  const Http2Front front(server.port(), {.streams_max = 3});
  EngineRig rig({front.url()});
  speak_two(rig, 100);
  rig.config.slots = 12;
  rig.arm(base::Pacing::kClosedLoop, 12);
  rig.issue(120);
  ASSERT_TRUE(rig.pump_records(120));
  EXPECT_EQ(fine(rig), 120U);
  EXPECT_LE(support::sockets_to(front.port()).size(), 12U);
}

TEST(EngineHttp2, ConnectionsMaxHoldsAndItsStreamsAreTheRoom) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server(streams({"a"}, 1ms));
  const Http2Front front(server.port());
  EngineRig rig({front.url()});
  speak_two(rig, 20);
  rig.config.slots = 600;
  rig.config.target.connections_max = 2;
  rig.arm(base::Pacing::kClosedLoop, 600);
  rig.issue(600);
  ASSERT_TRUE(rig.pump_records(600));
  EXPECT_EQ(fine(rig), 600U);
  EXPECT_LE(support::sockets_to(front.port()).size(), 2U);
  EXPECT_LE(server.in_flight_max(), 40U);
  EXPECT_GT(server.in_flight_max(), 2U);
}

TEST(EngineHttp2, SeveralShardsAndWorkersAndConnectionsOpenedAhead) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server(streams({"a"}));
  const Http2Front front(server.port());
  EngineRig rig({front.url(), front.url()});
  speak_two(rig, 50);
  rig.config.workers = 2;
  rig.config.slots = 700;
  rig.config.target.connections_warm = 16;
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_EQ(rig.warmed->connections_open, 16U);
  rig.arm(base::Pacing::kClosedLoop, 700);
  rig.issue(2000);
  ASSERT_TRUE(rig.pump_records(2000));
  EXPECT_EQ(fine(rig), 2000U);
}

TEST(EngineHttp2, ThePacerIsAskedForConnectionsAndNotForStreams) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server(streams({"a"}, 30ms));
  const Http2Front front(server.port());
  EngineRig rig({front.url()});
  speak_two(rig, 10);
  rig.config.slots = 30;
  rig.config.target.connect_rate_max = 20;
  rig.arm(base::Pacing::kClosedLoop, 30);
  rig.issue(30);
  ASSERT_TRUE(rig.pump_records(30));
  EXPECT_EQ(fine(rig), 30U);
  Instant first = base::kFarFuture;
  Instant last{};
  for (const auto& record : rig.records) {
    if (!record.connection_reused) {
      first = std::min(first, record.sent_at);
      last = std::max(last, record.sent_at);
    }
  }
  EXPECT_GE(last - first, Duration::millis(40));
}

TEST(EngineHttp2, TlsAgreesOnItByAlpnAndALargeBodyGoesUp) {
  TUTTI_NEEDS_NGHTTPX();
  const std::string cert = fmt::format("/tmp/tutti-h2-{}.pem", getpid());
  const std::string key = cert + ".key";
  support::make_certificate({}, nullptr, cert, key);
  ScriptedServer server(streams({"a"}));
  const Http2Front front(server.port(), {.cert_file = cert, .key_file = key});
  const std::string file = fmt::format("/tmp/tutti-h2-body-{}", getpid());
  auto writer = data::BodySetWriter::create(file);
  ASSERT_TRUE(writer->add("{\"p\":\"" + std::string(3'000'000, 'x') + "\"}", -1));
  ASSERT_TRUE(writer->finish());
  const auto bodies = data::BodySet::open(file);
  EngineRig rig({front.url()});
  speak_two(rig, 10);
  rig.config.bodies = &*bodies;
  rig.config.slots = 4;
  std::ifstream pem(cert);
  rig.config.target.ca_pem.assign(std::istreambuf_iterator<char>(pem), {});
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_TRUE(rig.warmed->frontends.at(0).reachable) << rig.warmed->frontends.at(0).error;
  rig.arm(base::Pacing::kClosedLoop, 4);
  auto commands = EngineRig::commands(0, 8);
  for (auto& command : commands) {
    command.sample = 0;
  }
  ASSERT_EQ(rig.engine().issue(0, commands), 8U);
  ASSERT_TRUE(rig.pump_records(8));
  EXPECT_EQ(fine(rig), 8U);
  EXPECT_EQ(server.seen().at(7).body.size(), 3'000'008U);
  rig.engine().stop();
  for (const auto& each : {cert, key, file}) {
    std::filesystem::remove(each);
  }
}

TEST(EngineHttp2, AStreamThatRunsOutOfTimeLeavesItsNeighboursAlone) {
  TUTTI_NEEDS_NGHTTPX();
  ScriptedServer server([](const support::ScriptedRequest& request) {
    return support::stream_script({"a", "b"}, request.number == 0 ? 2s : 1ms);
  });
  const Http2Front front(server.port());
  EngineRig rig({front.url()});
  speak_two(rig, 10);
  rig.config.slots = 3;
  rig.config.target.request_timeout = Duration::millis(500);
  rig.arm(base::Pacing::kClosedLoop, 3);
  rig.issue(100);
  ASSERT_TRUE(rig.pump_records(100));
  std::size_t late = 0;
  for (const auto& record : rig.records) {
    late += record.failure == Failure::kRequestTimeout ? 1U : 0U;
    EXPECT_TRUE(record.failure == Failure::kRequestTimeout || record.failure == Failure::kNone)
        << record.error_message;
  }
  EXPECT_EQ(late, 1U);
  EXPECT_EQ(support::sockets_to(front.port()).size(), 1U);
}

// One connection at a time is opened for all who wait; if each then had its own time for another,
// they would take a minute.
TEST(EngineHttp2, ThoseWhoWaitForAConnectionThatDoesNotStandFailWithIt) {
  const support::DeafPort nobody;
  EngineRig rig({nobody.url()});
  speak_two(rig, 100);
  rig.config.slots = 30;
  rig.config.target.connect_timeout = Duration::seconds(2);
  rig.arm(base::Pacing::kClosedLoop, 30);
  rig.issue(30);
  ASSERT_TRUE(rig.pump_records(30));
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.failure, Failure::kConnectTimeout) << record.error_message;
    EXPECT_FALSE(record.sent_at.is_set());
  }
  rig.engine().stop();
}

// ---- other versions --------------------------------------------------------------------------

TEST(EngineHttp2, AnHttpsFrontendWithoutItIsSaidBeforeTheRunAndFailsIn) {
  ScriptedServer server(streams({"a"}), true);
  EngineRig rig({server.url()});
  speak_two(rig, 10);
  rig.config.target.verify_tls = false;
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_FALSE(rig.warmed->frontends.at(0).reachable);
  EXPECT_THAT(rig.warmed->frontends.at(0).error, HasSubstr("does not offer HTTP/2"));
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kBadReply);
  EXPECT_THAT(record.error_message, HasSubstr("answered in HTTP/1.1 where http_version asks"));
}

TEST(EngineHttp2, AnHttpFrontendWithoutItFails) {
  const RawPeer peer([](int fd, std::size_t) {
    RawPeer::read_until(fd, "SM\r\n\r\n");
    RawPeer::write_all(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    RawPeer::read_until(fd, "never");
  });
  EngineRig rig({peer.url()});
  speak_two(rig, 10);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kReset) << record.error_message;
  EXPECT_THAT(record.error_message, HasSubstr("perhaps it does not speak HTTP/2 without TLS"));
  rig.engine().stop();
}

// ---- frames ----------------------------------------------------------------------------------

std::string frame(char type, char flags, std::uint32_t stream, const std::string& payload) {
  const auto byte = [](std::size_t value, unsigned shift) {
    return static_cast<char>(value >> shift & 0xFFU);
  };
  return std::string{byte(payload.size(), 16),
                     byte(payload.size(), 8),
                     byte(payload.size(), 0),
                     type,
                     flags,
                     byte(stream, 24),
                     byte(stream, 16),
                     byte(stream, 8),
                     byte(stream, 0)} +
         payload;
}

std::string four(std::uint32_t value) {
  return {static_cast<char>(value >> 24U), static_cast<char>(value >> 16U),
          static_cast<char>(value >> 8U), static_cast<char>(value)};
}

const char kHeaders = 1;
const char kRstStream = 3;
const char kSettings = 4;
const char kGoAway = 7;
const std::uint32_t kInternalError = 2;
const std::uint32_t kRefusedStream = 7;

// Until a frame of HEADERS and its body, of which our requests need one DATA frame, have come;
// then the number of its stream; 0: the connection has ended.
std::uint32_t next_request(int fd, std::string& buffer, bool& greeted) {
  constexpr std::size_t kPreface = 24;
  constexpr std::size_t kHead = 9;
  const auto need = [&](std::size_t count) {
    char bytes[4096];
    while (buffer.size() < count) {
      const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
      if (n <= 0) {
        return false;
      }
      buffer.append(bytes, static_cast<std::size_t>(n));
    }
    return true;
  };
  if (!greeted) {
    if (!need(kPreface)) {
      return 0;
    }
    buffer.erase(0, kPreface);
    RawPeer::write_all(fd, frame(kSettings, 0, 0, ""));
    greeted = true;
  }
  const auto at = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(buffer[i]));
  };
  while (need(kHead)) {
    const std::size_t size = at(0) << 16U | at(1) << 8U | at(2);
    const bool last = at(3) == 0 && (at(4) & 1U) != 0;  // DATA that ends its stream
    const std::uint32_t stream = at(5) << 24U | at(6) << 16U | at(7) << 8U | at(8);
    if (!need(kHead + size)) {
      return 0;
    }
    buffer.erase(0, kHead + size);
    if (last) {
      return stream;
    }
  }
  return 0;
}

// ":status: 200" and "content-type: text/event-stream", each as the static table has them.
std::string ok_head(std::uint32_t stream) {
  const std::string type = "text/event-stream";
  return frame(kHeaders, 4, stream,
               std::string("\x88\x0f\x10") + static_cast<char>(type.size()) + type);
}

std::string whole_reply(std::uint32_t stream) {
  return ok_head(stream) +
         frame(0, 1, stream, support::content_event("a") + support::finish_events());
}

// One answer a request, in order over all connections, which are served side by side; an empty one
// ends its connection. Outlives those who connect.
class FramesPeer {
 public:
  using Answer = std::function<std::string(std::uint32_t stream, std::size_t number)>;
  // `later`: what follows an answer once the next request has come, on whichever connection.
  explicit FramesPeer(Answer answer, Answer later = {})
      : answer_(std::move(answer)),
        later_(std::move(later)),
        peer_(std::make_unique<RawPeer>([this](int fd, std::size_t) {
          threads_.emplace_back([this, own = dup(fd)] { serve(own); });
        })) {}
  FramesPeer(const FramesPeer&) = delete;
  FramesPeer& operator=(const FramesPeer&) = delete;
  ~FramesPeer() {
    peer_.reset();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  std::string url() const { return peer_->url(); }
  std::size_t connections() const { return peer_->connections(); }

 private:
  void serve(int fd) {
    std::string buffer;
    bool greeted = false;
    while (const std::uint32_t stream = next_request(fd, buffer, greeted)) {
      const std::size_t number = count_++;
      const std::string bytes = answer_(stream, number);
      if (bytes.empty()) {
        shutdown(fd, SHUT_RDWR);
        break;
      }
      RawPeer::write_all(fd, bytes);
      if (const std::string more = later_ ? later_(stream, number) : ""; !more.empty()) {
        for (int waits = 0; count_ < number + 2 && waits < 1000; ++waits) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        RawPeer::write_all(fd, more);
      }
    }
    close(fd);
  }

  Answer answer_;
  Answer later_;
  std::atomic<std::size_t> count_{0};
  std::vector<std::thread> threads_;
  std::unique_ptr<RawPeer> peer_;
};

TEST(EngineHttp2, AResetStreamIsAResetAndItsConnectionIsUsedOn) {
  const FramesPeer peer([](std::uint32_t stream, std::size_t number) {
    return number == 0   ? frame(kRstStream, 0, stream, four(kInternalError))
           : number == 1 ? ok_head(stream) + frame(0, 0, stream, support::content_event("a")) +
                               frame(kRstStream, 0, stream, four(kInternalError))
                         : whole_reply(stream);
  });
  EngineRig rig({peer.url()});
  speak_two(rig, 10);
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(3);
  ASSERT_TRUE(rig.pump_records(3));
  EXPECT_EQ(rig.records[0].failure, Failure::kReset) << rig.records[0].error_message;
  EXPECT_THAT(rig.records[0].error_message, HasSubstr("INTERNAL_ERROR"));
  EXPECT_FALSE(rig.records[0].resent);
  EXPECT_EQ(rig.records[1].failure, Failure::kReset) << rig.records[1].error_message;
  EXPECT_EQ(rig.records[2].failure, Failure::kNone) << rig.records[2].error_message;
  EXPECT_EQ(peer.connections(), 1U);
  rig.engine().stop();
}

TEST(EngineHttp2, ARefusedStreamWasNeverBegunAndIsSentAgainOnce) {
  const FramesPeer peer([](std::uint32_t stream, std::size_t number) {
    return number == 1 ? whole_reply(stream) : frame(kRstStream, 0, stream, four(kRefusedStream));
  });
  EngineRig rig({peer.url()});
  speak_two(rig, 10);
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(rig.records[0].failure, Failure::kNone) << rig.records[0].error_message;
  EXPECT_TRUE(rig.records[0].resent);
  EXPECT_EQ(rig.records[1].failure, Failure::kReset) << rig.records[1].error_message;
  EXPECT_TRUE(rig.records[1].resent);
  rig.engine().stop();
}

// The stream before it is served to its end. (Where there is none, libcurl 7.88 keeps the reason to
// itself, and the query fails.)
TEST(EngineHttp2, AStreamBeyondAGoawayIsSentAgainOnANewConnection) {
  const FramesPeer peer(
      [](std::uint32_t stream, std::size_t number) {
        return number == 0   ? ok_head(stream)
               : number == 1 ? frame(kGoAway, 0, 0, four(1) + four(0))
                             : whole_reply(stream);
      },
      [](std::uint32_t, std::size_t number) {
        const std::string rest = support::content_event("a") + support::finish_events();
        return number == 1 ? frame(0, 1, 1, rest) : std::string();
      });
  EngineRig rig({peer.url()});
  speak_two(rig, 10);
  rig.config.slots = 2;
  rig.arm(base::Pacing::kClosedLoop, 2);
  rig.issue(4);
  ASSERT_TRUE(rig.pump_records(4));
  EXPECT_EQ(fine(rig), 4U);
  std::size_t resent = 0;
  for (const auto& record : rig.records) {
    resent += record.resent ? 1U : 0U;
  }
  EXPECT_EQ(resent, 1U);
  EXPECT_EQ(peer.connections(), 2U);
  rig.engine().stop();
}

TEST(EngineHttp2, AConnectionThatEndsTakesItsStreamsWithIt) {
  const FramesPeer peer([](std::uint32_t stream, std::size_t number) {
    return number == 2 ? std::string() : number > 2 ? whole_reply(stream) : ok_head(stream);
  });
  EngineRig rig({peer.url()});
  speak_two(rig, 10);
  rig.config.slots = 3;
  rig.arm(base::Pacing::kClosedLoop, 3);
  rig.issue(4);
  ASSERT_TRUE(rig.pump_records(4));
  std::size_t lost = 0;
  for (const auto& record : rig.records) {
    lost += record.failure == Failure::kReset ? 1U : 0U;
    EXPECT_TRUE(record.failure == Failure::kReset || record.failure == Failure::kNone)
        << record.error_message;
  }
  EXPECT_GE(lost, 2U);
  rig.engine().stop();
}

}  // namespace
}  // namespace tutti::drive
