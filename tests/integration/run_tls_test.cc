// Whole runs over https: mixed with http, checked certificates, and what the report says of stamps.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/certificate.h"
#include "tests/support/program.h"

namespace tutti::testing_support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class RunTls : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fresh_folder("tls");
    support::make_certificate({}, nullptr, base_ + "/cert.pem", base_ + "/key.pem");
  }
  std::vector<std::string> tls_flags() const {
    return {"--ttft",     "2ms",
            "--gap",      "1ms",
            "--tokens",   "6",
            "--tls-cert", base_ + "/cert.pem",
            "--tls-key",  base_ + "/key.pem"};
  }
  Ran run(const std::vector<std::string>& urls, const std::string& more, bool trusted) const {
    std::vector<std::string> words{"tutti",
                                   "benchmark",
                                   "online",
                                   "--model",
                                   "m",
                                   "--dataset",
                                   write_prompts(base_, 20),
                                   "--report-dir",
                                   base_ + "/run",
                                   "--load-pattern",
                                   "concurrency",
                                   "--concurrency",
                                   "6",
                                   "--num-samples",
                                   "60",
                                   more};
    for (const auto& url : urls) {
      words.insert(words.end(), {"--endpoints", url});
    }
    std::map<std::string, std::string> environment;
    if (trusted) {
      environment["SSL_CERT_FILE"] = base_ + "/cert.pem";
    }
    return run_program(words, 60'000, environment);
  }
  json summary() const { return read_json(base_ + "/run/performance/result_summary.json"); }

  std::string base_;
};

TEST_F(RunTls, HttpAndHttpsFrontendsMixAndBothHaveTheKernelsStamps) {
  const Mock secure(1, tls_flags());
  const Mock plain(1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "6"});
  const Ran ran = run({secure.urls()[0], plain.urls()[0]}, "--transport=direct", true);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const json found = summary();
  EXPECT_EQ(found["n_samples_completed"], 60);
  EXPECT_EQ(found["n_samples_failed"], 0);
  EXPECT_EQ(found["distributed"]["stamps"], "kernel receive");
  EXPECT_THAT(read_text(base_ + "/run/report.txt"), HasSubstr("Stamps of replies: the kernel's"));
}

TEST_F(RunTls, LibcurlsStampsAreOfTheRead) {
  const Mock secure(1, tls_flags());
  const Ran ran = run({secure.urls()[0]}, "--transport=multi", true);
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(summary()["n_samples_failed"], 0);
  EXPECT_EQ(summary()["distributed"]["stamps"], "read");
}

TEST_F(RunTls, AStrangersCertificateEndsTheRunBeforeItBeginsUnlessNotChecked) {
  const Mock secure(1, tls_flags());
  const Ran refused = run({secure.urls()[0]}, "--transport=auto", false);
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("certificate"));
  const Ran careless = run({secure.urls()[0]}, "--client.insecure", false);
  ASSERT_EQ(careless.exit_code, 0) << careless.output;
  EXPECT_EQ(summary()["n_samples_failed"], 0);
}

}  // namespace
}  // namespace tutti::testing_support
