#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "common/sys/address.h"
#include "common/sys/limits.h"

namespace tutti::sys {
namespace {

TEST(Address, ReadsBothFamiliesAndNothingElse) {
  EXPECT_EQ(text_of(*parse_ip("10.0.0.5")), "10.0.0.5");
  EXPECT_EQ(text_of(*parse_ip("FD00:0::5")), "fd00::5");
  EXPECT_EQ(*parse_ip("fd00::5"), *parse_ip("fd00:0:0:0:0:0:0:5"));
  EXPECT_NE(*parse_ip("0.0.0.0"), *parse_ip("::"));
  for (const char* bad :
       {"", "host", "10.0.0", "10.0.0.5:80", "[::1]", "10.0.0.5/8", "fe80::1%lo"}) {
    EXPECT_FALSE(parse_ip(bad)) << bad;
  }
}

TEST(Address, ABlockCoversItsPrefix) {
  EXPECT_TRUE(covers("127.0.0.1/8", *parse_ip("127.9.9.9")));
  EXPECT_FALSE(covers("127.0.0.1/8", *parse_ip("128.0.0.1")));
  EXPECT_TRUE(covers("10.1.2.3", *parse_ip("10.1.2.3")));
  EXPECT_FALSE(covers("10.1.2.3", *parse_ip("10.1.2.4")));
  EXPECT_TRUE(covers("10.0.0.128/25", *parse_ip("10.0.0.200")));
  EXPECT_FALSE(covers("10.0.0.128/25", *parse_ip("10.0.0.100")));
  EXPECT_TRUE(covers("fd00::/16", *parse_ip("fd00::1")));
  EXPECT_FALSE(covers("::/0", *parse_ip("10.0.0.1"))) << "another family";
  for (const char* bad : {"", "x", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/-1", "10.0.0.1/8x"}) {
    EXPECT_FALSE(covers(bad, *parse_ip("10.0.0.1"))) << bad;
  }
}

TEST(Address, AllOfLoopbackIsThisHosts) {
  const auto own = own_addresses();
  bool covered = false;
  for (const auto& block : own) {
    covered = covered || covers(block, *parse_ip("127.0.1.1"));
  }
  EXPECT_TRUE(covered);
  EXPECT_EQ(bind_error(*parse_ip("127.0.1.1")), 0);
  EXPECT_EQ(bind_error(*parse_ip("192.0.2.77")), EADDRNOTAVAIL);
}

TEST(Limits, MemoryIsKnownOnLinux) { EXPECT_GT(available_memory(), std::uint64_t{1} << 20); }

}  // namespace
}  // namespace tutti::sys
