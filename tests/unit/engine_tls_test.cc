// The direct way over TLS: connections that are made, kept, lost and warmed; stamps; what goes
// wrong on the way to a secured connection.

#include <poll.h>
#include <sys/socket.h>

#include "tests/support/loopback.h"
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

void make_direct(EngineRig& rig, bool verify = false) {
  rig.config.target.way = base::Way::kDirect;
  rig.config.target.verify_tls = verify;
}

TEST(EngineDirectTls, HttpAndHttpsFrontendsMixInOneWorker) {
  ScriptedServer plain(streams({"a", "b"}));
  ScriptedServer secure(streams({"a", "b"}), true);
  EngineRig rig({plain.url(), secure.url()});
  make_direct(rig);
  rig.config.slots = 4;
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.arm(base::Pacing::kClosedLoop, 4);
  rig.issue(80);
  ASSERT_TRUE(rig.pump_records(80));
  std::size_t handshakes = 0;
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    handshakes += record.tls_us > 0 ? 1U : 0U;
    if (record.tls_us > 0) {
      EXPECT_EQ(record.frontend, 1U);
      EXPECT_GT(record.connect_us, 0U);
    }
  }
  EXPECT_EQ(handshakes, secure.connections());
  EXPECT_EQ(secure.requests(), 40U);
  EXPECT_EQ(plain.requests(), 40U);
}

TEST(EngineDirectTls, WarmingDoesTheHandshakesAndTicketsDoNotEndThem) {
  ScriptedServer server(streams({"a"}, 20ms), true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.config.slots = 8;
  rig.config.target.connections_warm = 8;
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_TRUE(rig.warmed->frontends[0].reachable) << rig.warmed->frontends[0].error;
  EXPECT_EQ(rig.warmed->connections_open, 8U);
  std::this_thread::sleep_for(100ms);  // the server's tickets have come by now
  const std::size_t before = server.connections();
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(40);
  ASSERT_TRUE(rig.pump_records(40));
  EXPECT_EQ(server.connections(), before);
  for (const auto& record : rig.records) {
    EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
    EXPECT_EQ(record.tls_us, 0U);
    EXPECT_EQ(record.connect_us, 0U);
    EXPECT_FALSE(record.resent);
  }
}

// They were not used yet, so that their age says nothing of the server's patience with idle ones.
TEST(EngineDirectTls, ConnectionsOpenedAheadDoNotAge) {
  ScriptedServer server(streams({"a"}), true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.config.slots = 2;
  rig.config.target.connections_warm = 2;
  rig.config.target.idle_connection_max = Duration::millis(50);
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  const std::size_t before = server.connections();
  std::this_thread::sleep_for(120ms);
  rig.arm(base::Pacing::kClosedLoop, 1);
  for (base::Seq seq = 0; seq < 3; ++seq) {
    rig.issue(1, seq);
    ASSERT_TRUE(rig.pump_records(seq + 1));
    EXPECT_EQ(rig.records[seq].outcome, wire::Outcome::kOk) << rig.records[seq].error_message;
    // The second one too, although the first lies before it and is too old by then.
    EXPECT_EQ(rig.records[seq].tls_us > 0, seq == 2);
    std::this_thread::sleep_for(120ms);
  }
  EXPECT_EQ(server.connections(), before + 1);
}

TEST(EngineDirectTls, KeyUpdatesOnAnIdleConnectionKeepIt) {
  ScriptedServer server(
      [](const ScriptedRequest&) {
        auto script = support::stream_script({"a"});
        script.push_back(support::pause_for(5ms));
        script.push_back(support::new_keys());
        return script;
      },
      true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.arm(base::Pacing::kClosedLoop, 1);
  for (base::Seq seq = 0; seq < 5; ++seq) {
    rig.issue(1, seq);
    ASSERT_TRUE(rig.pump_records(seq + 1));
    EXPECT_EQ(rig.records[seq].outcome, wire::Outcome::kOk) << rig.records[seq].error_message;
    EXPECT_EQ(rig.records[seq].connection_reused, seq > 0);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST(EngineDirectTls, ConnectionsThatEndWhileIdleAreReplacedUnnoticed) {
  for (const auto& end : {support::close_now(), support::goodbye(), support::reset_now()}) {
    ScriptedServer server(
        [&end](const ScriptedRequest&) {
          auto script = support::stream_script({"a"});
          script.push_back(support::pause_for(5ms));
          script.push_back(end);
          return script;
        },
        true);
    EngineRig rig({server.url()});
    make_direct(rig);
    rig.arm(base::Pacing::kClosedLoop, 1);
    for (base::Seq seq = 0; seq < 3; ++seq) {
      rig.issue(1, seq);
      ASSERT_TRUE(rig.pump_records(seq + 1));
      EXPECT_EQ(rig.records[seq].outcome, wire::Outcome::kOk) << rig.records[seq].error_message;
      EXPECT_FALSE(rig.records[seq].connection_reused);
      EXPECT_FALSE(rig.records[seq].resent);
      std::this_thread::sleep_for(30ms);
    }
    EXPECT_EQ(server.connections(), 3U);
  }
}

TEST(EngineDirectTls, AnIdleConnectionThatSpeaksIsNotUsed) {
  ScriptedServer server(
      [](const ScriptedRequest&) {
        auto script = support::stream_script({"a"});
        script.push_back(support::pause_for(5ms));
        script.push_back(support::send_bytes("HTTP/1.1 408 Request Timeout\r\n\r\n"));
        return script;
      },
      true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.arm(base::Pacing::kClosedLoop, 1);
  for (base::Seq seq = 0; seq < 2; ++seq) {
    rig.issue(1, seq);
    ASSERT_TRUE(rig.pump_records(seq + 1));
    EXPECT_EQ(rig.records[seq].outcome, wire::Outcome::kOk) << rig.records[seq].error_message;
    std::this_thread::sleep_for(30ms);
  }
  EXPECT_EQ(server.connections(), 2U);
}

TEST(EngineDirectTls, AQueryOfWhichNotOneByteWasTakenIsSentAgainOnce) {
  ScriptedServer server(streams({"a"}), true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(1);
  ASSERT_TRUE(rig.pump_records(1));
  for (const int fd : support::sockets_to(server.port())) {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length);
    if (ntohs(own.sin_port) != server.port()) {
      // From now on it takes nothing; the server must not answer the FIN before the next query.
      shutdown(fd, SHUT_WR);
    }
  }
  rig.issue(1, 1);
  ASSERT_TRUE(rig.pump_records(2));
  const wire::Record& record = rig.records[1];
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_FALSE(record.connection_reused);
  EXPECT_GT(record.tls_us, 0U);
  EXPECT_EQ(server.requests(), 2U);
}

TEST(EngineDirectTls, AKeptConnectionThatTookTheRequestAndClosedIsAFailure) {
  ScriptedServer server(
      [](const ScriptedRequest& request) {
        return request.on_connection == 0 ? support::stream_script({"a"})
                                          : support::Script{support::close_now()};
      },
      true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  EXPECT_EQ(rig.records[1].failure, Failure::kReset);
  EXPECT_THAT(rig.records[1].error_message, HasSubstr("without a reply"));
  EXPECT_FALSE(rig.records[1].resent);
  EXPECT_EQ(server.requests(), 2U);
}

// Far more than the sockets' buffers hold, so that writes are cut everywhere.
TEST(EngineDirectTls, ALargeBodyArrivesWhole) {
  std::string file = fmt::format("/tmp/tutti-tls-body-{}", getpid());
  const std::string half(4'000'000, 'x');
  auto writer = data::BodySetWriter::create(file);
  ASSERT_TRUE(writer->add("{\"p\":\"" + half + half + "\"}", 6));
  ASSERT_TRUE(writer->finish());
  const auto bodies = data::BodySet::open(file);
  ScriptedServer server(streams({"a"}), true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.config.bodies = &*bodies;
  rig.arm(base::Pacing::kClosedLoop, 1);
  for (base::Seq seq = 0; seq < 2; ++seq) {
    auto command = EngineRig::commands(seq, 1);
    command[0].sample = 0;
    command[0].salted = true;
    command[0].salt = 0x1234 + seq;
    ASSERT_EQ(rig.engine().issue(0, command), 1U);
    ASSERT_TRUE(rig.pump_records(seq + 1));
    EXPECT_EQ(rig.records[seq].outcome, wire::Outcome::kOk) << rig.records[seq].error_message;
    EXPECT_EQ(rig.records[seq].connection_reused, seq > 0);
    EXPECT_EQ(server.seen().at(seq).body,
              fmt::format("{{\"p\":\"[{:016x}] {}{}\"}}", 0x1234 + seq, half, half));
  }
  rig.engine().stop();
  std::filesystem::remove(file);
}

// ---- on the way ------------------------------------------------------------------------------

TEST(EngineDirectTls, CertificatesThatDoNotFitAreTlsFailuresInWords) {
  struct Refusal {
    support::Certificate certificate;
    bool trusted;
    const char* says;
  };
  const Refusal refusals[] = {
      {{}, false, "self-signed certificate"},
      {{"IP:127.0.0.2,DNS:elsewhere"}, true, "it is not for \"127.0.0.1\""},
      {{"IP:127.0.0.1", -7200, -3600}, true, "expired"},
  };
  for (const auto& each : refusals) {
    ScriptedServer server(streams({"a"}), true, each.certificate);
    if (each.trusted) {
      setenv("SSL_CERT_FILE", server.certificate_file().c_str(), 1);
    }
    EngineRig rig({server.url()});
    make_direct(rig, true);
    const wire::Record record = rig.one();
    unsetenv("SSL_CERT_FILE");
    EXPECT_EQ(record.failure, Failure::kTls);
    EXPECT_THAT(record.error_message, HasSubstr(fmt::format("127.0.0.1:{}", server.port())));
    EXPECT_THAT(record.error_message, HasSubstr("certificate is not accepted"));
    EXPECT_THAT(record.error_message, HasSubstr(each.says));
    EXPECT_FALSE(record.sent_at.is_set());
    EXPECT_EQ(server.requests(), 0U);
  }
}

TEST(EngineDirectTls, ATrustedNameIsResolvedCheckedAndServed) {
  ScriptedServer server(streams({"a"}), true, {"DNS:localhost"});
  setenv("SSL_CERT_FILE", server.certificate_file().c_str(), 1);
  EngineRig rig({fmt::format("https://localhost:{}/v1/chat/completions", server.port())});
  make_direct(rig, true);
  const wire::Record record = rig.one();
  unsetenv("SSL_CERT_FILE");
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
  EXPECT_GT(record.dns_us, 0U);
  EXPECT_GT(record.tls_us, 0U);
}

TEST(EngineDirectTls, AMissingCertificateFileIsNamed) {
  ScriptedServer server(streams({"a"}), true);
  setenv("SSL_CERT_FILE", "/no/such/file.pem", 1);
  EngineRig rig({server.url()});
  make_direct(rig, true);
  const wire::Record record = rig.one();
  unsetenv("SSL_CERT_FILE");
  EXPECT_EQ(record.failure, Failure::kTls);
  EXPECT_THAT(record.error_message, HasSubstr("SSL_CERT_FILE \"/no/such/file.pem\""));
}

TEST(EngineDirectTls, AServerWithoutTlsIsATlsFailure) {
  const RawPeer peer([](int fd, std::size_t) {
    char byte = 0;
    recv(fd, &byte, 1, 0);
    RawPeer::write_all(fd, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    RawPeer::read_until(fd, "never");
  });
  EngineRig rig({fmt::format("https://127.0.0.1:{}/x", peer.port())});
  make_direct(rig);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kTls);
  EXPECT_THAT(record.error_message, HasSubstr("TLS handshake failed: wrong version number"));
  rig.engine().stop();
}

TEST(EngineDirectTls, AServerThatHangsUpInTheHandshakeIsATlsFailure) {
  const RawPeer peer([](int fd, std::size_t) {
    char hello[4096];
    recv(fd, hello, sizeof hello, 0);
  });
  EngineRig rig({fmt::format("https://127.0.0.1:{}/x", peer.port())});
  make_direct(rig);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kTls);
  EXPECT_THAT(record.error_message, HasSubstr("TLS handshake failed"));
  rig.engine().stop();
}

TEST(EngineDirectTls, TheConnectTimeoutCoversTheHandshake) {
  const RawPeer peer([](int fd, std::size_t) { RawPeer::read_until(fd, "never"); });
  EngineRig rig({fmt::format("https://127.0.0.1:{}/x", peer.port())});
  make_direct(rig);
  rig.config.target.connect_timeout = Duration::millis(150);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kConnectTimeout);
  EXPECT_GE(record.done_at - record.issued_at, Duration::millis(150));
  EXPECT_GT(record.connect_us, 0U);
  rig.engine().stop();
}

// Between `near` and a server on this host, until one of the two closes.
void relay(int near, std::uint16_t port) {
  const sys::Fd far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = support::loopback(port);
  if (::connect(far.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;
  }
  pollfd ends[] = {{near, POLLIN, 0}, {far.get(), POLLIN, 0}};
  while (::poll(ends, 2, 5000) > 0) {
    for (const int from : {0, 1}) {
      char bytes[16'384];
      if (ends[from].revents != 0) {
        const ssize_t n = recv(ends[from].fd, bytes, sizeof bytes, 0);
        if (n <= 0) {
          return;
        }
        RawPeer::write_all(ends[1 - from].fd, {bytes, static_cast<std::size_t>(n)});
      }
    }
  }
}

// TCP stood before the query came, so that nothing but the handshake is left to wait for. The
// warming's own connection gets an answer, the others get none.
TEST(EngineTls, TheConnectTimeoutCoversTheHandshakeOfAConnectionOpenedAhead) {
  for (const base::Way way : {base::Way::kDirect, base::Way::kMulti}) {
    ScriptedServer server(streams({"a"}), true);
    const RawPeer peer([&server](int fd, std::size_t number) {
      if (number == 0) {
        relay(fd, server.port());
      } else {
        RawPeer::read_until(fd, "never");
      }
    });
    EngineRig rig({fmt::format("https://127.0.0.1:{}/x", peer.port())});
    rig.config.target.way = way;
    rig.config.target.verify_tls = false;
    rig.config.target.connections_warm = 1;
    rig.config.target.connect_timeout = Duration::millis(200);
    rig.engine().warm();
    ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
    EXPECT_TRUE(rig.warmed->frontends[0].reachable) << rig.warmed->frontends[0].error;
    const wire::Record record = rig.one();
    EXPECT_EQ(record.failure, Failure::kConnectTimeout) << record.error_message;
    EXPECT_GE(record.done_at - record.issued_at, Duration::millis(200));
    EXPECT_LT(record.done_at - record.issued_at, Duration::seconds(5));
    rig.engine().stop();
  }
}

TEST(EngineDirectTls, QueriesInTheHandshakeCanBeCancelledAndTimeOut) {
  std::vector<sys::Fd> held;
  const RawPeer peer([&held](int fd, std::size_t) { held.emplace_back(dup(fd)); });
  EngineRig rig({fmt::format("https://127.0.0.1:{}/x", peer.port())});
  make_direct(rig);
  rig.config.slots = 8;
  rig.config.target.request_timeout = Duration::millis(100);
  rig.arm(base::Pacing::kClosedLoop, 8);
  rig.issue(8);
  ASSERT_TRUE(rig.pump_records(8));
  for (const auto& record : rig.records) {
    EXPECT_NE(record.outcome, wire::Outcome::kOk);
  }
  rig.issue(8, 8);
  rig.engine().abort("enough");
  ASSERT_TRUE(rig.pump([&] { return rig.engine().outstanding(0) == 0; }));
  rig.engine().stop();
}

// ---- stamps ----------------------------------------------------------------------------------

// The worker comes to its socket late; the record says when the records of TLS came.
TEST(EngineDirectTls, AStampSaysWhenTheBytesCameAndNotWhenTheyWereRead) {
  ScriptedServer server(
      [](const ScriptedRequest&) {
        return support::Script{
            support::send_bytes(support::stream_head()),
            support::send_bytes(support::http_chunk(support::content_event("a"))),
            support::pause_for(150ms),
            support::send_bytes(support::http_chunk(support::content_event("b")) +
                                support::http_chunk(support::finish_events()) +
                                support::last_chunk())};
      },
      true);
  EngineRig rig({server.url()});
  make_direct(rig);
  rig.config.target.stamp_every_chunk = true;
  BareTransport transport(rig, 40ms);
  const wire::Record* record = transport.one();
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->outcome, wire::Outcome::kOk) << record->error_message;
  EXPECT_LE(record->sent_at, record->first_byte_at);
  EXPECT_LE(record->first_byte_at, record->first_token_at);
  EXPECT_LE(record->last_token_at, record->done_at);
  if (transport.gauges().reads_unstamped.load() > 0) {
    GTEST_SKIP() << "this kernel gives no receive stamps";
  }
  EXPECT_LE(record->done_at, transport.read_at().back() - Duration::millis(35));
}

}  // namespace
}  // namespace tutti::drive
