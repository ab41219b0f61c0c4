// CURVE key files: what is written can be read, and a file that gives the secret away is not used.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/wire/curve.h"

namespace tutti::wire {
namespace {

using testing::HasSubstr;

class WireCurve : public testing::Test {
 protected:
  WireCurve() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-curve-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~WireCurve() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    ::chmod(path(name).c_str(), 0600);
    return path(name);
  }

  std::filesystem::path folder_;
};

TEST_F(WireCurve, APairSurvivesItsFileAndOnlyTheOwnerCanReadIt) {
  const KeyPair pair = fresh_key_pair();
  EXPECT_TRUE(is_key(pair.public_key) && is_key(pair.secret_key));
  EXPECT_NE(pair.secret_key, fresh_key_pair().secret_key);
  ASSERT_TRUE(write_key_pair(path("agent"), pair).has_value());
  const auto back = read_key_pair(path("agent"));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->public_key, pair.public_key);
  EXPECT_EQ(back->secret_key, pair.secret_key);
  struct stat facts {};
  ASSERT_EQ(::stat(path("agent").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_EQ(read_public_keys(path("agent.pub")).value(), std::vector<std::string>{pair.public_key});
}

TEST_F(WireCurve, ASecretOthersCanReadIsRefusedWithTheRemedy) {
  ASSERT_TRUE(write_key_pair(path("k"), fresh_key_pair()).has_value());
  for (const mode_t mode : {0640U, 0604U, 0660U, 0601U}) {
    ::chmod(path("k").c_str(), mode);
    const auto back = read_key_pair(path("k"));
    ASSERT_FALSE(back.has_value()) << mode;
    EXPECT_THAT(back.error().message, HasSubstr("chmod 600"));
  }
}

TEST_F(WireCurve, AnExistingFileIsNotOverwritten) {
  const KeyPair first = fresh_key_pair();
  ASSERT_TRUE(write_key_pair(path("k"), first).has_value());
  EXPECT_FALSE(write_key_pair(path("k"), fresh_key_pair()).has_value());
  EXPECT_EQ(read_key_pair(path("k"))->secret_key, first.secret_key);
}

TEST_F(WireCurve, HalvesOfTwoPairsAndForeignFilesAreRefused) {
  const std::string mixed = write("mixed", "public " + fresh_key_pair().public_key + "\nsecret " +
                                               fresh_key_pair().secret_key + "\n");
  EXPECT_THAT(read_key_pair(mixed).error().message, HasSubstr("not of one pair"));
  EXPECT_THAT(read_key_pair(write("junk", "-----BEGIN")).error().message, HasSubstr("no key pair"));
  EXPECT_THAT(read_key_pair(path("absent")).error().message, HasSubstr("No such file"));
  EXPECT_THAT(read_key_pair(folder_.string()).error().message, HasSubstr("not a regular file"));
}

TEST_F(WireCurve, AnAllowListNamesEveryBadLine) {
  const std::string a = fresh_key_pair().public_key;
  const std::string b = fresh_key_pair().public_key;
  const std::string good = write("good", "// our agents\n\npublic " + a + " node1\r\npublic " + b);
  EXPECT_EQ(read_public_keys(good).value(), (std::vector<std::string>{a, b}));
  const std::string bad = write("bad", "public " + a + "\npublic short\n" + b + "\n");
  EXPECT_THAT(read_public_keys(bad).error().message, HasSubstr("line 2, 3"));
  EXPECT_THAT(read_public_keys(write("none", "// nobody\n")).error().message,
              HasSubstr("no public key"));
}

}  // namespace
}  // namespace tutti::wire
