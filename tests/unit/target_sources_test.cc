// Source addresses: whose they are, and that connections spread over them.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/target/sources.h"
#include "common/base/random.h"

namespace tutti::target {
namespace {

using testing::HasSubstr;

std::vector<sys::IpAddress> addresses(const std::vector<std::string>& texts) {
  std::vector<sys::IpAddress> out;
  for (const auto& text : texts) {
    out.push_back(*sys::parse_ip(text));
  }
  return out;
}

std::string bound_to(const sys::Fd& fd, std::uint16_t* port = nullptr) {
  sockaddr_in where{};
  socklen_t length = sizeof where;
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&where), &length), 0);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &where.sin_addr, text, sizeof text);
  if (port != nullptr) {
    *port = ntohs(where.sin_port);
  }
  return text;
}

TEST(Sources, WhatIsNotThisHostsIsNamedAllAtOnce) {
  EXPECT_TRUE(parse_sources({"127.0.0.1", "127.0.7.7"}));
  const auto refused = parse_sources({"192.0.2.77", "127.0.0.1", "eth0", "127.0.0.1", "0.0.0.0"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ExitCode::kSetup);
  EXPECT_THAT(refused.error().message, HasSubstr("192.0.2.77 is not this host's"));
  EXPECT_THAT(refused.error().message, HasSubstr("\"eth0\" is not an IP address"));
  EXPECT_THAT(refused.error().message, HasSubstr("127.0.0.1 is given twice"));
  EXPECT_THAT(refused.error().message, HasSubstr("0.0.0.0 stands for any"));
}

TEST(Sources, ASocketIsBoundToItsSourceAndTakesNoPortYet) {
  Sources sources(addresses({"127.0.1.1"}), 1, 0);
  std::uint16_t source = kNoSource;
  int error = 0;
  const sys::Fd fd = sources.open(AF_INET, 0, source, error);
  ASSERT_TRUE(fd.is_open()) << std::strerror(error);
  std::uint16_t port = 1;
  EXPECT_EQ(bound_to(fd, &port), "127.0.1.1");
  EXPECT_EQ(port, 0);
  EXPECT_EQ(sources.connections(0, source), 1U);
  sources.closed(0, source);
  EXPECT_EQ(sources.connections(0, source), 0U);
}

TEST(Sources, WithoutAddressesNothingIsBound) {
  Sources sources({}, 2, 0);
  std::uint16_t source = 0;
  int error = 0;
  const sys::Fd fd = sources.open(AF_INET, 1, source, error);
  EXPECT_EQ(bound_to(fd), "0.0.0.0");
  EXPECT_EQ(source, kNoSource);
  sources.closed(1, source);
}

TEST(Sources, TheOtherFamilysAreSkippedAndNoneLeftIsAnError) {
  Sources both(addresses({"::1", "127.0.1.1", "127.0.1.2"}), 1, 0);
  std::uint16_t source = kNoSource;
  int error = 0;
  for (int i = 0; i < 4; ++i) {
    const sys::Fd fd = both.open(AF_INET, 0, source, error);
    ASSERT_TRUE(fd.is_open());
    EXPECT_EQ(bound_to(fd), i % 2 == 0 ? "127.0.1.1" : "127.0.1.2");
  }
  Sources six(addresses({"::1"}), 1, 0);
  EXPECT_FALSE(six.open(AF_INET, 0, source, error).is_open());
  EXPECT_EQ(error, EPFNOSUPPORT);
  EXPECT_EQ(source, kNoSource);
}

// However connections come and go, the pairs of one frontend are level when it has them all open.
TEST(Sources, PairsStayLevelWhateverCloses) {
  base::Mt19937 draw(5);
  Sources sources(addresses({"127.0.1.1", "127.0.1.2", "127.0.1.3"}), 2, 1);
  std::vector<std::pair<std::uint16_t, std::uint16_t>> open;
  for (int i = 0; i < 3000; ++i) {
    if (!open.empty() && draw.below(3) == 0) {
      std::swap(open[draw.below(open.size())], open.back());
      sources.closed(open.back().first, open.back().second);
      open.pop_back();
      continue;
    }
    const auto frontend = static_cast<std::uint16_t>(draw.below(2));
    std::uint16_t source = kNoSource;
    int error = 0;
    const sys::Fd fd = sources.open(AF_INET, frontend, source, error);
    ASSERT_TRUE(fd.is_open());
    std::uint32_t least = UINT32_MAX;
    for (std::uint16_t s = 0; s < 3; ++s) {
      least = std::min(least, sources.connections(frontend, s) - (s == source ? 1U : 0U));
    }
    ASSERT_EQ(sources.connections(frontend, source), least + 1) << "there was a freer one";
    open.emplace_back(frontend, source);
  }
}

}  // namespace
}  // namespace tutti::target
