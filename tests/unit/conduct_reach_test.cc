// What the target says of how frontends are reached: headers in order, files read once, what is
// wrong with them by name, and which texts are secrets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/text/base64.h"
#include "coordinator/conduct/prepare.h"
#include "coordinator/conduct/reach.h"

namespace tutti::conduct {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

class ConductReach : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-reach-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    config_.endpoint_config.endpoints = {"https://h:1"};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  std::string folder_;
  spec::Config config_;
};

TEST_F(ConductReach, TheTargetSaysItAll) {
  spec::Distributed& ours = config_.distributed;
  ours.user_password = "Aladdin:open sesame";
  ours.headers = spec::Tree::map();
  ours.headers.set("X-Team", spec::Tree::of_string("blue"));
  ours.proxy = "http://u:p@proxy:3128";
  ours.http_version = spec::HttpVersion::kHttp2;
  ours.streams_per_connection = 7;
  const wire::TargetSpec target = target_of(config_);
  ASSERT_EQ(target.headers.size(), 4U);
  // The example of RFC 7617.
  EXPECT_EQ(target.headers[0],
            (wire::Header{"Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}));
  EXPECT_EQ(target.headers[3], (wire::Header{"X-Team", "blue"}));
  EXPECT_EQ(target.proxy, "http://u:p@proxy:3128");
  EXPECT_EQ(target.streams_max, 7U);
  EXPECT_EQ(target_of(spec::Config{}).streams_max, 0U);
}

TEST_F(ConductReach, CertificatesAreReadWhole) {
  const std::string cert = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";
  const std::string key = "-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\n";
  spec::Distributed& ours = config_.distributed;
  ours.ca_file = file("ca", cert + cert);
  ours.client_cert_file = ours.client_key_file = file("both", cert + key);
  wire::TargetSpec target;
  const auto status = read_certificates(ours, target);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(target.ca_pem, cert + cert);
  EXPECT_EQ(target.client_cert_pem, cert + key);
  EXPECT_EQ(target.client_key_pem, cert + key);
}

TEST_F(ConductReach, AllThatIsWrongWithThemIsSaidAtOnce) {
  spec::Distributed& ours = config_.distributed;
  ours.ca_file = folder_ + "/none";
  ours.client_cert_file = file("cert", "-----BEGIN PUBLIC KEY-----\n");
  ours.client_key_file = file("key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  wire::TargetSpec target;
  const auto status = read_certificates(ours, target);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ExitCode::kInput);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("ca_file: \"" + *ours.ca_file + "\" No such file"),
                    HasSubstr("client_cert_file: \"" + *ours.client_cert_file +
                              "\" is no PEM file with a certificate"),
                    HasSubstr("client_key_file: \"" + *ours.client_key_file +
                              "\" is locked by a passphrase")));
  ours = {};
  ours.ca_file = file("large", std::string(300'000, 'x'));
  EXPECT_THAT(read_certificates(ours, target).error().message, HasSubstr("has 300000 bytes"));
}

TEST_F(ConductReach, SecretsAreKnownInTheirParts) {
  EXPECT_THAT(secrets_of(config_), ElementsAre());
  config_.endpoint_config.api_key = "sk-1";
  config_.distributed.user_password = "anna:s1";
  config_.distributed.headers = spec::Tree::map();
  config_.distributed.headers.set("Authorization", spec::Tree::of_string("Token s2"));
  config_.distributed.headers.set("X-Home", spec::Tree::of_string("/root/anna"));
  config_.distributed.proxy = "http://bert:s3@p:1";
  const auto found = secrets_of(config_);
  EXPECT_THAT(found, IsSupersetOf({"sk-1", "anna:s1", "s1", "Token s2", "s2", "bert:s3", "s3"}));
  EXPECT_THAT(found, testing::Not(testing::Contains("/root/anna")));
}

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(text::base64(""), "");
  EXPECT_EQ(text::base64("f"), "Zg==");
  EXPECT_EQ(text::base64("fo"), "Zm8=");
  EXPECT_EQ(text::base64("foo"), "Zm9v");
  EXPECT_EQ(text::base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(text::base64(std::string("\xFF\x00\xFE", 3)), "/wD+");
}

}  // namespace
}  // namespace tutti::conduct
