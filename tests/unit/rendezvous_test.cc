// Two sides meet through a file: it appears whole, names addresses others can dial, and a file that
// is something else is no address.

#include "common/sys/rendezvous.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/sys/fd.h"

namespace tutti::sys {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::string file_in_fresh_folder(const std::string& name) {
  const std::string folder = testing::TempDir() + "rendezvous-" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder + "/coordinator";
}

TEST(Rendezvous, WhatIsPublishedIsFoundAndNothingElseIsLeft) {
  const std::string path = file_in_fresh_folder("found");
  EXPECT_THAT(published_endpoints(path), IsEmpty());
  ASSERT_TRUE(publish_endpoints(path, {"tcp://a:1", "tcp://[fe::1]:2"}));
  EXPECT_THAT(published_endpoints(path), ElementsAre("tcp://a:1", "tcp://[fe::1]:2"));
  ASSERT_TRUE(publish_endpoints(path, {"tcp://b:3"}));
  EXPECT_THAT(published_endpoints(path), ElementsAre("tcp://b:3"));
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    static_cast<void>(entry);
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

TEST(Rendezvous, AFileOfSomethingElseNamesNobody) {
  const std::string path = file_in_fresh_folder("else");
  for (const char* text : {"hello\n", "tcp://a:1\nnonsense\n", "tcp://:1\n", "tcp://a:\n", "\n"}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_THAT(published_endpoints(path), IsEmpty()) << text;
  }
}

TEST(Rendezvous, AFolderThatIsNotThereIsAClearError) {
  const auto status = publish_endpoints("/nonexistent/folder/file", {"tcp://a:1"});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, base::ExitCode::kSetup);
  EXPECT_THAT(status.error().message, HasSubstr("/nonexistent/folder/file"));
}

TEST(Rendezvous, AWildcardBecomesAddressesAndANamedAddressStays) {
  EXPECT_THAT(reachable_endpoints("tcp://10.1.2.3:7"), ElementsAre("tcp://10.1.2.3:7"));
  EXPECT_THAT(reachable_endpoints("tcp://[::1]:7"), ElementsAre("tcp://[::1]:7"));
  const auto any = reachable_endpoints("tcp://0.0.0.0:4321");
  ASSERT_THAT(any, Not(IsEmpty()));
  EXPECT_THAT(any, Each(StartsWith("tcp://")));
  EXPECT_THAT(any, Each(EndsWith(":4321")));
  EXPECT_THAT(any, Each(Not(HasSubstr("0.0.0.0"))));
  EXPECT_THAT(any, Each(Not(HasSubstr("["))));
}

TEST(Rendezvous, OnlyAnOpenPortAnswers) {
  Fd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), any, size), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  ASSERT_EQ(getsockname(listener.get(), any, &size), 0);
  const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_TRUE(answers(endpoint, base::Duration::seconds(5)));
  listener.close();
  EXPECT_FALSE(answers(endpoint, base::Duration::seconds(5)));
  EXPECT_FALSE(answers("tcp://no.such.host.invalid:1", base::Duration::seconds(1)));
  EXPECT_FALSE(answers("nonsense", base::Duration::seconds(1)));
}

}  // namespace
}  // namespace tutti::sys
