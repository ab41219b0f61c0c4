// How frontends are reached: through proxies of each kind, with logins and headers, with
// certificates that the run names, and what is said when one of them does not do.

#include <fstream>
#include <iterator>

#include "common/text/base64.h"
#include "tests/support/test_proxy.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using support::Certificate;
using support::ScriptedServer;
using support::TestProxy;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using wire::Failure;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A client's own certificate and key.
struct ClientIdentity {
  ClientIdentity() {
    support::make_certificate({"DNS:client"}, nullptr, cert_file, key_file);
    cert = text_of(cert_file);
    key = text_of(key_file);
  }
  ~ClientIdentity() {
    std::filesystem::remove(cert_file);
    std::filesystem::remove(key_file);
  }
  std::string cert_file = fmt::format("/tmp/tutti-client-{}.pem", getpid());
  std::string key_file = fmt::format("/tmp/tutti-client-{}.key", getpid());
  std::string cert;
  std::string key;
};

void expect_fine(const wire::Record& record) {
  EXPECT_EQ(record.outcome, wire::Outcome::kOk) << record.error_message;
}

// ---- proxies ---------------------------------------------------------------------------------

TEST(EngineProxy, APlainFrontendIsAskedByItsWholeUrlAndTheConnectionIsKept) {
  ScriptedServer server(streams({"a"}));
  const TestProxy proxy({.user = "anna", .password = "pass word"});
  EngineRig rig({server.url()});
  rig.config.target.proxy = proxy.url("http", "anna:pass%20word");
  rig.config.target.headers.push_back({"X-Team", "blue"});
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(2);
  ASSERT_TRUE(rig.pump_records(2));
  expect_fine(rig.records[0]);
  expect_fine(rig.records[1]);
  EXPECT_GT(rig.records[0].connect_us, 0U);
  EXPECT_TRUE(rig.records[1].connection_reused);
  EXPECT_EQ(proxy.connections(), 1U);
  const auto asked = proxy.asked();
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(asked[0], StartsWith("POST " + server.url() + " HTTP/1.1\r\n"));
  EXPECT_THAT(asked[0], HasSubstr("\r\nX-Team: blue\r\n"));
  EXPECT_EQ(rig.records[0].bytes_up, asked[0].size() + row_body(0).size());
  EXPECT_EQ(server.seen().at(0).header("X-Team"), "blue");
}

TEST(EngineProxy, AnHttpsFrontendIsReachedByATunnelThatSeesNoHeaderOfOurs) {
  ScriptedServer server(streams({"a"}), true);
  const TestProxy proxy({.user = "anna", .password = "secret"});
  EngineRig rig({server.url()});
  rig.config.target.ca_pem = text_of(server.certificate_file());
  rig.config.target.proxy = proxy.url("http", "anna:secret");
  expect_fine(rig.one());
  const wire::Record& record = rig.records.back();
  EXPECT_GT(record.tls_us, 0U);
  EXPECT_EQ(record.http_status, 200);
  const auto asked = proxy.asked();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_THAT(asked[0], AllOf(StartsWith(fmt::format("CONNECT 127.0.0.1:{} ", server.port())),
                              Not(HasSubstr("secret-key"))));
  EXPECT_EQ(server.seen().at(0).header("Authorization"), "Bearer secret-key");
  EXPECT_EQ(server.seen().at(0).header("Proxy-Authorization"), "");
}

TEST(EngineProxy, AProxyBehindTlsCarriesBothAndSeesNoHeaderOfATunnel) {
  ScriptedServer plain(streams({"a"}));
  ScriptedServer secure(streams({"a"}), true);
  const TestProxy proxy({.user = "anna", .password = "secret", .tls = true});
  EngineRig rig({plain.url(), secure.url()});
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.config.target.ca_pem = proxy.certificate() + text_of(secure.certificate_file());
  rig.config.target.proxy = proxy.url("https", "anna:secret");
  rig.arm(base::Pacing::kClosedLoop, 1);
  rig.issue(4);
  ASSERT_TRUE(rig.pump_records(4));
  for (const wire::Record& record : rig.records) {
    expect_fine(record);
  }
  EXPECT_EQ(plain.seen().size(), 2U);
  EXPECT_EQ(secure.seen().size(), 2U);
  std::size_t tunnels = 0;
  for (const std::string& head : proxy.asked()) {
    tunnels += head.starts_with(fmt::format("CONNECT 127.0.0.1:{} ", secure.port())) ? 1U : 0U;
    EXPECT_EQ(head.starts_with("CONNECT"), head.find("secret-key") == std::string::npos) << head;
  }
  EXPECT_EQ(tunnels, 1U);
  EXPECT_EQ(proxy.connections(), 2U);
}

TEST(EngineProxy, AProxyBehindTlsWhoseCertificateNobodyKnowsIsRefused) {
  ScriptedServer server(streams({"a"}));
  const TestProxy proxy({.tls = true});
  EngineRig rig({server.url()});
  rig.config.target.proxy = proxy.url("https");
  const wire::Record& record = rig.one();
  EXPECT_EQ(record.failure, Failure::kTls);
  EXPECT_THAT(record.error_message, HasSubstr(proxy.label()));
  EXPECT_TRUE(proxy.asked().empty());
}

TEST(EngineProxy, SocksCarriesBothAndResolvesWhereItIsTold) {
  ScriptedServer plain(streams({"a"}));
  ScriptedServer secure(streams({"a"}), true, {"DNS:localhost"});
  for (const bool there : {false, true}) {
    const TestProxy proxy({.socks = true, .user = "anna", .password = "secret"});
    EngineRig rig({fmt::format("http://localhost:{}/x", plain.port()),
                   fmt::format("https://localhost:{}/x", secure.port())});
    rig.config.target.balance = base::Balance::kRoundRobin;
    rig.config.target.ca_pem = text_of(secure.certificate_file());
    rig.config.target.proxy = proxy.url(there ? "socks5h" : "socks5", "anna:secret");
    rig.arm(base::Pacing::kClosedLoop, 1);
    rig.issue(2);
    ASSERT_TRUE(rig.pump_records(2));
    expect_fine(rig.records[0]);
    expect_fine(rig.records[1]);
    EXPECT_THAT(proxy.asked(),
                testing::UnorderedElementsAre(
                    fmt::format("{}:{}", there ? "localhost" : "127.0.0.1", plain.port()),
                    fmt::format("{}:{}", there ? "localhost" : "127.0.0.1", secure.port())));
  }
}

TEST(EngineProxy, ConnectionsAreOpenedAheadToTheProxyAndUsed) {
  ScriptedServer server(streams({"a"}));
  ScriptedServer secure(streams({"a"}), true);
  const TestProxy proxy;
  EngineRig rig({server.url(), secure.url()});
  rig.config.slots = 4;
  rig.config.target.verify_tls = false;
  rig.config.target.balance = base::Balance::kRoundRobin;
  rig.config.target.connections_warm = 4;
  rig.config.target.proxy = proxy.url();
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_EQ(rig.warmed->connections_open, 4U);
  for (const auto& reach : rig.warmed->frontends) {
    EXPECT_TRUE(reach.reachable) << reach.error;
  }
  // A plain frontend cannot be tried without a request: its probe asks for no tunnel, which many a
  // proxy allows to port 443 only.
  const auto asked = proxy.asked();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_THAT(asked[0], StartsWith(fmt::format("CONNECT 127.0.0.1:{} ", secure.port())));
  const std::size_t before = proxy.connections();
  rig.arm(base::Pacing::kClosedLoop, 4);
  rig.issue(4);
  ASSERT_TRUE(rig.pump_records(4));
  for (const auto& record : rig.records) {
    expect_fine(record);
  }
  EXPECT_EQ(proxy.connections(), before);
}

struct ProxyTrouble {
  const char* name;
  std::string proxy;
  std::string url;
  Failure failure;
  std::vector<std::string> says;
};

TEST(EngineProxy, WhatGoesWrongThereIsNamedWithoutThePassword) {
  ScriptedServer plain(streams({"a"}));
  ScriptedServer secure(streams({"a"}), true);
  const TestProxy open;
  const TestProxy locked({.user = "anna", .password = "secret"});
  const TestProxy socks({.socks = true, .user = "anna", .password = "secret"});
  const std::string nobody = fmt::format("127.0.0.1:{}", support::closed_port());
  const std::string dead = fmt::format("https://127.0.0.1:{}/x", support::closed_port());
  const std::vector<ProxyTrouble> troubles{
      {"refused",
       "http://anna:topsecret@" + nobody,
       plain.url(),
       Failure::kConnect,
       {"through proxy " + nobody, "Connection refused"}},
      {"login of a tunnel",
       locked.url("http", "anna:topsecret"),
       secure.url(),
       Failure::kConnect,
       {"through proxy " + locked.label(), "407", "distributed.proxy"}},
      {"login of a URL", locked.url(), plain.url(), Failure::kHttpStatus, {"407"}},
      {"tunnel to nobody",
       open.url(),
       dead,
       Failure::kConnect,
       {"through proxy " + open.label(), "502"}},
      {"socks login",
       socks.url("socks5", "anna:topsecret"),
       plain.url(),
       Failure::kConnect,
       {"through proxy " + socks.label()}},
      {"socks to nobody",
       socks.url("socks5h", "anna:secret"),
       dead,
       Failure::kConnect,
       {"through proxy " + socks.label()}},
  };
  for (const auto& each : troubles) {
    SCOPED_TRACE(each.name);
    EngineRig rig({each.url});
    rig.config.target.verify_tls = false;
    rig.config.target.proxy = each.proxy;
    const wire::Record record = rig.one();
    EXPECT_EQ(record.failure, each.failure) << record.error_message;
    EXPECT_THAT(record.error_message, Not(HasSubstr("topsecret")));
    for (const auto& words : each.says) {
      EXPECT_THAT(record.error_message, HasSubstr(words));
    }
    rig.engine().stop();
  }
}

TEST(EngineProxy, ADeadProxyIsSaidBeforeTheRun) {
  ScriptedServer server(streams({"a"}));
  EngineRig rig({server.url()});
  rig.config.target.proxy = fmt::format("http://127.0.0.1:{}", support::closed_port());
  rig.engine().warm();
  ASSERT_TRUE(rig.pump([&] { return rig.warmed.has_value(); }));
  EXPECT_FALSE(rig.warmed->frontends.at(0).reachable);
  EXPECT_THAT(rig.warmed->frontends.at(0).error, HasSubstr("through proxy 127.0.0.1:"));
}

TEST(EngineProxy, TheEnvironmentsAreNotFollowed) {
  ScriptedServer server(streams({"a"}));
  const TestProxy proxy;
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  setenv("no_proxy", "*", 1);
  for (const std::string& named : {std::string(), proxy.url()}) {
    EngineRig rig({server.url()});
    rig.config.target.proxy = named;
    rig.config.target.way = base::Way::kMulti;
    expect_fine(rig.one());
    EXPECT_EQ(proxy.connections(), named.empty() ? 0U : 1U);
  }
  unsetenv("http_proxy");
  unsetenv("no_proxy");
}

TEST(EngineProxy, DirectRefusesByName) {
  EngineRig rig({"http://127.0.0.1:1/x"});
  rig.config.target.way = base::Way::kDirect;
  rig.config.target.proxy = "ftp://anna:topsecret@x:1";
  const auto engine = Engine::start(rig.config, rig.clock);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message,
              AllOf(HasSubstr("direct goes through no proxy"),
                    HasSubstr("proxy: its scheme is not spoken"), Not(HasSubstr("topsecret"))));
}

// ---- certificates, on both ways --------------------------------------------------------------

class EngineCertificates : public testing::TestWithParam<base::Way> {};

TEST_P(EngineCertificates, OnlyWhatTheRunNamesIsTrusted) {
  ScriptedServer server(streams({"a"}), true);
  const ClientIdentity other;
  for (const bool ours : {true, false}) {
    EngineRig rig({server.url()});
    rig.config.target.way = GetParam();
    rig.config.target.ca_pem = ours ? text_of(server.certificate_file()) : other.cert;
    setenv("SSL_CERT_FILE", ours ? "/no/such/file" : server.certificate_file().c_str(), 1);
    const wire::Record record = rig.one();
    unsetenv("SSL_CERT_FILE");
    EXPECT_EQ(record.failure, ours ? Failure::kNone : Failure::kTls) << record.error_message;
    rig.engine().stop();
  }
}

TEST_P(EngineCertificates, TheClientsIsShownToThoseWhoAsk) {
  const ClientIdentity mine;
  Certificate asking;
  asking.clients_file = mine.cert_file;
  ScriptedServer server(streams({"a"}), true, asking);
  for (const bool shown : {true, false}) {
    EngineRig rig({server.url()});
    rig.config.target.way = GetParam();
    rig.config.target.verify_tls = false;
    if (shown) {
      rig.config.target.client_cert_pem = mine.cert;
      rig.config.target.client_key_pem = mine.key;
    }
    rig.arm(base::Pacing::kClosedLoop, 1);
    rig.issue(2);
    ASSERT_TRUE(rig.pump_records(2));
    EXPECT_EQ(rig.records[0].outcome == wire::Outcome::kOk, shown) << rig.records[0].error_message;
    EXPECT_EQ(rig.records[1].outcome == wire::Outcome::kOk, shown) << rig.records[1].error_message;
    rig.engine().stop();
  }
}

TEST_P(EngineCertificates, AKeyOfAnotherIsATlsFailure) {
  const ClientIdentity mine;
  const std::string key_file = mine.key_file + "2";
  support::make_certificate({"DNS:other"}, nullptr, key_file + ".pem", key_file);
  ScriptedServer server(streams({"a"}), true);
  EngineRig rig({server.url()});
  rig.config.target.way = GetParam();
  rig.config.target.verify_tls = false;
  rig.config.target.client_cert_pem = mine.cert;
  rig.config.target.client_key_pem = text_of(key_file);
  const wire::Record record = rig.one();
  EXPECT_EQ(record.failure, Failure::kTls) << record.error_message;
  std::filesystem::remove(key_file);
  std::filesystem::remove(key_file + ".pem");
}

INSTANTIATE_TEST_SUITE_P(Ways, EngineCertificates,
                         testing::Values(base::Way::kDirect, base::Way::kMulti),
                         [](const auto& way) {
                           return way.param == base::Way::kDirect ? "Direct" : "Multi";
                         });

}  // namespace
}  // namespace tutti::drive
