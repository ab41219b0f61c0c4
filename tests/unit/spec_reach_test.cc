// `distributed`: proxy, HTTP version, login, headers, certificates. What is refused and in which
// words, what follows for the transport, and that none of it is ever printed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/spec/dump.h"
#include "common/spec/read.h"
#include "common/spec/redact.h"

namespace tutti::spec {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Reading read(const std::string& distributed, const std::string& scheme = "http",
             const std::string& more = "") {
  return read_config_text(
      fmt::format("type: online\nmodel_params: {{name: m}}\ndatasets: [{{path: d.jsonl}}]\n"
                  "settings: {{load_pattern: {{type: concurrency, target_concurrency: 4}}{}}}\n"
                  "endpoint_config: {{endpoints: ['{}://h:8000']{}}}\ndistributed: {{{}}}\n",
                  more.starts_with("client") ? ", " + more : "", scheme,
                  more.starts_with("api_key") ? ", " + more : "", distributed),
      "f.yaml", [](const std::string&) { return std::nullopt; });
}

std::string refused(const std::string& distributed, const std::string& scheme = "http",
                    const std::string& more = "") {
  const Reading reading = read(distributed, scheme, more);
  EXPECT_FALSE(reading) << distributed;
  return reading ? "" : to_text(reading.error().problems);
}

Distributed accepted(const std::string& distributed, const std::string& scheme = "http") {
  const Reading reading = read(distributed, scheme);
  EXPECT_TRUE(reading) << distributed << (reading ? "" : to_text(reading.error().problems));
  return reading ? reading->config.distributed : Distributed{};
}

TEST(SpecReach, AProxyOrHttp2TakesMultiAndNothingElseDoes) {
  EXPECT_EQ(accepted("").transport, base::Way::kAuto);
  EXPECT_EQ(accepted("headers: {X-Team: blue}").transport, base::Way::kAuto);
  for (const char* proxy :
       {"http://p:1", "https://u:p@p:1/", "socks5://[::1]:1080", "socks5h://u%3A:p%40@p:65535"}) {
    EXPECT_EQ(accepted(fmt::format("proxy: '{}'", proxy)).transport, base::Way::kMulti);
  }
  EXPECT_EQ(accepted("http_version: http2").transport, base::Way::kMulti);
  EXPECT_EQ(accepted("http_version: http2, proxy: 'http://p:1'", "https").transport,
            base::Way::kMulti);
  EXPECT_EQ(accepted("http_version: http2, proxy: 'socks5://p:1'").transport, base::Way::kMulti);
  EXPECT_THAT(refused("transport: direct, proxy: 'http://p:1', http_version: http2"),
              AllOf(HasSubstr("distributed.proxy: needs transport multi or auto"),
                    HasSubstr("distributed.http_version: http2 needs transport multi"),
                    HasSubstr("reaches https endpoints only")));
}

TEST(SpecReach, ProxiesThatAreNoneAreRefusedWithoutTheirText) {
  for (const char* bad :
       {"topsecret@p:1", "ftp://u:topsecret@p:1", "http://u:topsecret@p", "http://u:topsecret@:1",
        "http://u:topsecret@p:0", "http://u:topsecret@p:65536", "http://u:topsecret@p:1x",
        "http://u:topsecret@p:1/path", "http://"}) {
    EXPECT_THAT(refused(fmt::format("proxy: '{}'", bad)),
                AllOf(HasSubstr("distributed.proxy: "), Not(HasSubstr("topsecret"))));
  }
  EXPECT_THAT(refused("proxy: 'http://<redacted>@p:1'"), HasSubstr("placeholder"));
  EXPECT_THAT(refused("proxy: ['http://u:topsecret@p:1']"), Not(HasSubstr("topsecret")));
}

TEST(SpecReach, StreamsAreOfHttp2) {
  EXPECT_EQ(accepted("http_version: http2, streams_per_connection: 7").streams_per_connection, 7);
  EXPECT_THAT(refused("streams_per_connection: 7"), HasSubstr("of http_version http2 only"));
  EXPECT_THAT(refused("http_version: http2, streams_per_connection: 0"),
              HasSubstr("must be >= 1 and <= 1000"));
  EXPECT_THAT(refused("http_version: http3"), HasSubstr("must be one of http1.1, http2"));
}

TEST(SpecReach, LoginsAndHeadersAreCheckedTogether) {
  const Distributed fine =
      accepted("user_password: 'anna:a:b', headers: {X-Team: blue, X-Empty: ''}");
  EXPECT_EQ(fine.user_password, "anna:a:b");
  ASSERT_EQ(fine.headers.entries.size(), 2U);
  EXPECT_EQ(fine.headers.entries[0].value.text, "blue");
  accepted("headers: {Authorization: 'Token abc'}");

  EXPECT_THAT(refused("user_password: topsecret"),
              AllOf(HasSubstr("must look like USER:PASSWORD"), Not(HasSubstr("topsecret"))));
  EXPECT_THAT(refused("user_password: 'a:b'", "http", "api_key: k"),
              HasSubstr("would be two Authorization headers"));
  EXPECT_THAT(refused("user_password: <redacted>"), HasSubstr("placeholder"));
  EXPECT_THAT(
      refused("user_password: 'a:b', affinity_header: X-Session, headers: {authorization: x, "
              "Host: x, 'no good': x, x-session: x, X-A: x, x-a: topsecret, X-Number: 5, "
              "X-Line: \"topsecret\\r\\nX-B: x\", X-Old: <redacted>}"),
      AllOf(HasSubstr("headers.authorization: is sent already"),
            HasSubstr("headers.Host: cannot be Host"),
            HasSubstr("headers.no good: is not the name"),
            HasSubstr("headers.x-session: is sent already"),
            HasSubstr("headers.x-a: is sent already"), HasSubstr("headers.X-Number: must be text"),
            HasSubstr("headers.X-Line: must be text, in quotes and in one line"),
            HasSubstr("headers.X-Old: holds the placeholder"), Not(HasSubstr("topsecret"))));
}

TEST(SpecReach, CertificatesThatWouldNotBeUsedAreRefused) {
  accepted("ca_file: a, client_cert_file: b, client_key_file: c", "https");
  accepted("ca_file: a, proxy: 'https://p:1'");
  EXPECT_THAT(refused("ca_file: a, client_cert_file: b, client_key_file: c"),
              AllOf(HasSubstr("ca_file: has nothing to check"),
                    HasSubstr("client_cert_file: would not be shown")));
  EXPECT_THAT(refused("client_cert_file: b", "https"), HasSubstr("needs client_key_file"));
  EXPECT_THAT(refused("client_key_file: b", "https"), HasSubstr("needs client_cert_file"));
  EXPECT_THAT(refused("ca_file: a", "https", "client: {insecure: true}"),
              HasSubstr("client.insecure checks nothing"));
}

TEST(SpecReach, NoneOfItIsPrinted) {
  const Reading reading = read(
      "proxy: 'socks5h://anna:topsecret@p:1', user_password: 'anna:topsecret', headers: {X-Team: "
      "topsecret}, ca_file: /etc/ca.pem",
      "https");
  ASSERT_TRUE(reading);
  const std::string yaml = config_yaml(reading->config);
  EXPECT_THAT(yaml, AllOf(Not(HasSubstr("topsecret")), HasSubstr("socks5h://<redacted>@p:1"),
                          HasSubstr("X-Team: <redacted>"), HasSubstr("user_password: <redacted>"),
                          HasSubstr("ca_file: /etc/ca.pem"), HasSubstr("transport: multi")));
}

TEST(SpecReach, FlagsWithSecretsAreKnown) {
  for (const char* flag : {"--api-key", "--endpoint-config.api-key=x", "--user-password",
                           "--distributed.user-password", "--proxy=http://u:p@h:1", "--headers",
                           "--distributed.headers.X-Team"}) {
    EXPECT_TRUE(is_secret_flag(flag)) << flag;
  }
  for (const char* flag : {"--keys", "--agent-keys", "--transport", "-v", "api-key", "--", "",
                           "--ca-file", "--client-key-file=x"}) {
    EXPECT_FALSE(is_secret_flag(flag)) << flag;
  }
}

}  // namespace
}  // namespace tutti::spec
