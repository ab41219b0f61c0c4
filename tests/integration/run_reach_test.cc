// Whole runs by other ways to the frontends: through proxies, with logins, headers and
// certificates, over HTTP/2. What the report says of them, what is refused before the run, and that
// no secret stays anywhere.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/certificate.h"
#include "tests/support/http2_front.h"
#include "tests/support/program.h"
#include "tests/support/test_proxy.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using support::Http2Front;
using support::TestProxy;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kSecret = "very-secret-0123456789";

std::uint16_t port_of(const std::string& url) {
  return static_cast<std::uint16_t>(std::atoi(url.c_str() + url.rfind(':') + 1));
}

class RunReach : public testing::Test {
 protected:
  void SetUp() override { base_ = fresh_folder("reach"); }

  Ran run(const std::string& url, std::vector<std::string> more) const {
    OnlineRun wanted{write_prompts(base_, 20), base_ + "/run", {url}};
    wanted.concurrency = 12;
    wanted.queries = 120;
    wanted.more = std::move(more);
    std::vector<std::string> words = words_of(wanted);
    words.insert(words.begin() + 1, "-vv");
    return run_program(words, 60'000);
  }
  void expect_valid(const Ran& ran, const std::string& reached) const {
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
    const json found = read_json(base_ + "/run/performance/result_summary.json");
    EXPECT_EQ(found["n_samples_completed"], 120);
    EXPECT_EQ(found["n_samples_failed"], 0);
    EXPECT_EQ(found["distributed"]["reached"], reached);
    EXPECT_EQ(found["distributed"]["stamps"], reached.empty() ? "kernel receive" : "read");
    const std::string report = read_text(base_ + "/run/report.txt");
    EXPECT_EQ(report.find("Frontends are reached " + reached) != std::string::npos,
              !reached.empty());
    expect_no_secret(ran);
  }
  void expect_no_secret(const Ran& ran) const {
    EXPECT_THAT(ran.output, Not(HasSubstr(kSecret)));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(base_)) {
      if (entry.is_regular_file()) {
        EXPECT_THAT(read_text(entry.path()), Not(HasSubstr(kSecret))) << entry.path();
      }
    }
  }

  std::string base_;
};

TEST_F(RunReach, ThroughAProxyWithALogin) {
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "4"});
  const TestProxy proxy({.user = "anna", .password = kSecret});
  const Ran ran = run(mock.urls()[0], {"--proxy", proxy.url("http", "anna:" + kSecret), "--headers",
                                       R"({"X-Team": ")" + kSecret + R"("})"});
  expect_valid(ran, fmt::format("through the proxy http://<redacted>@{}", proxy.label()));
  EXPECT_GE(proxy.asked().size(), 120U);
  EXPECT_THAT(proxy.asked().front(), HasSubstr("\r\nX-Team: " + kSecret + "\r\n"));
  EXPECT_THAT(read_text(base_ + "/run/report.txt"), HasSubstr(" to 1 proxy (distinct host:port)"));
}

TEST_F(RunReach, ADeadProxyAndOneThatWantsALoginEndTheRunBeforeItBegins) {
  support::make_certificate({}, nullptr, base_ + "/cert.pem", base_ + "/key.pem");
  const Mock mock(1, {"--tls-cert", base_ + "/cert.pem", "--tls-key", base_ + "/key.pem"});
  const TestProxy locked({.user = "anna", .password = "other"});
  const Ran refused =
      run(mock.urls()[0], {"--client.insecure", "--proxy", locked.url("http", "anna:" + kSecret)});
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("through proxy " + locked.label()), HasSubstr("407")));
  const Ran dead =
      run(mock.urls()[0],
          {"--client.insecure", "--proxy",
           fmt::format("socks5h://anna:{}@127.0.0.1:{}", kSecret, support::closed_port())});
  EXPECT_EQ(dead.exit_code, 3) << dead.output;
  EXPECT_THAT(dead.output, HasSubstr("Connection refused"));
  expect_no_secret(refused);
  expect_no_secret(dead);
}

TEST_F(RunReach, DirectWithALoginAndACertificateOfTheRunsOwn) {
  support::make_certificate({}, nullptr, base_ + "/cert.pem", base_ + "/key.pem");
  const Mock mock(1, {"--ttft", "2ms", "--tokens", "4", "--tls-cert", base_ + "/cert.pem",
                      "--tls-key", base_ + "/key.pem"});
  expect_valid(run(mock.urls()[0], {"--transport", "direct", "--ca-file", base_ + "/cert.pem",
                                    "--client-cert-file", base_ + "/cert.pem", "--client-key-file",
                                    base_ + "/key.pem", "--user-password", "anna:" + kSecret}),
               "");
}

TEST_F(RunReach, WhatCannotBeIsRefusedAllAtOnce) {
  const Ran ran =
      run("https://127.0.0.1:1", {"--transport", "direct", "--http-version", "http2", "--proxy",
                                  "anna:" + kSecret + "@proxy", "--user-password", kSecret,
                                  "--client-cert-file", "none.pem"});
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  for (const char* field : {"http_version", "proxy", "user_password", "client_cert_file"}) {
    EXPECT_THAT(ran.output, HasSubstr(fmt::format("distributed.{}: ", field)));
  }
  EXPECT_THAT(ran.output, Not(HasSubstr(kSecret)));
  const Ran missing = run("https://127.0.0.1:1", {"--ca-file", base_ + "/none.pem"});
  EXPECT_EQ(missing.exit_code, 2) << missing.output;
  EXPECT_THAT(missing.output, HasSubstr("distributed.ca_file: \"" + base_ + "/none.pem\""));
}

TEST_F(RunReach, OverHttp2) {
  if (!Http2Front::is_there()) {
    GTEST_SKIP() << "nghttpx is not installed (package nghttp2-proxy)";
  }
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "4"});
  const Http2Front front(port_of(mock.urls()[0]));
  const Ran ran = run(front.base(), {"--http-version", "http2", "--streams-per-connection", "4"});
  expect_valid(ran, "over HTTP/2, at most 4 streams of one connection");
  const json found = read_json(base_ + "/run/performance/result_summary.json");
  EXPECT_EQ(found["distributed"]["resent"], 0);
}

TEST_F(RunReach, OverHttp2ThroughATunnelToHttps) {
  if (!Http2Front::is_there()) {
    GTEST_SKIP() << "nghttpx is not installed (package nghttp2-proxy)";
  }
  support::make_certificate({}, nullptr, base_ + "/cert.pem", base_ + "/key.pem");
  const Mock mock(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "4"});
  const Http2Front front(port_of(mock.urls()[0]),
                         {.cert_file = base_ + "/cert.pem", .key_file = base_ + "/key.pem"});
  const TestProxy proxy;
  expect_valid(run(front.base(), {"--http-version", "http2", "--ca-file", base_ + "/cert.pem",
                                  "--proxy", proxy.url()}),
               fmt::format("over HTTP/2, at most 100 streams of one connection, through the proxy "
                           "{}",
                           proxy.url()));
}

}  // namespace
}  // namespace tutti::testing_support
