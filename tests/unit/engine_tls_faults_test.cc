// Every fault of tutti-mock behind TLS: both ways onto the wire give the same record.

#include "tests/support/program.h"
#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

const char* const kFaults[] = {
    "status:503",        "status:302",    "reset",         "reset-after:3",
    "truncate:3",        "end:3",         "stall:3",       "no-answer",
    "slow-headers:50ms", "error-event:3", "named-error:3", "empty",
    "no-done",           "json",          "close",         "drip",
    "malformed:2",
};

class TlsFaults : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string base = testing_support::fresh_folder("tls-faults");
    certificate_ = base + "/cert.pem";
    key_ = base + "/key.pem";
    support::make_certificate({}, nullptr, certificate_, key_);
  }

  wire::Record ask(base::Way way) const {
    const testing_support::Mock mock(
        1, {"--ttft", "2ms", "--gap", "1ms", "--tokens", "6", "--fault",
            fmt::format("{}@every:1", GetParam()), "--tls-cert", certificate_, "--tls-key", key_});
    const std::string url = mock.urls()[0];
    EXPECT_EQ(url.rfind("https://", 0), 0U) << url;
    EngineRig rig({url + "/v1/chat/completions"});
    rig.config.target.way = way;
    rig.config.target.request_timeout = Duration::millis(1000);
    setenv("SSL_CERT_FILE", certificate_.c_str(), 1);
    wire::Record record = rig.one();
    unsetenv("SSL_CERT_FILE");
    rig.engine().stop();
    return record;
  }

 private:
  std::string certificate_;
  std::string key_;
};

TEST_P(TlsFaults, BothWaysGiveTheSameRecord) {
  const wire::Record direct = ask(base::Way::kDirect);
  const wire::Record multi = ask(base::Way::kMulti);
  EXPECT_EQ(direct.failure, multi.failure) << direct.error_message << " | " << multi.error_message;
  EXPECT_EQ(direct.outcome, multi.outcome);
  EXPECT_EQ(direct.http_status, multi.http_status);
  EXPECT_EQ(direct.content_events, multi.content_events);
  EXPECT_EQ(direct.output, multi.output);
  EXPECT_EQ(direct.finish_reason, multi.finish_reason);
  EXPECT_EQ(direct.completion_tokens, multi.completion_tokens);
  EXPECT_EQ(direct.malformed_events, multi.malformed_events);
  EXPECT_EQ(direct.resent, multi.resent);
  EXPECT_EQ(direct.first_byte_at.is_set(), multi.first_byte_at.is_set());
  EXPECT_EQ(direct.first_token_at.is_set(), multi.first_token_at.is_set());
  EXPECT_GT(direct.tls_us, 0U);
  EXPECT_GT(multi.tls_us, 0U);
}

INSTANTIATE_TEST_SUITE_P(Faults, TlsFaults, testing::ValuesIn(kFaults),
                         [](const testing::TestParamInfo<const char*>& each) {
                           std::string name = each.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) {
                                 return std::isalnum(static_cast<unsigned char>(c)) == 0;
                               },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace tutti::drive
