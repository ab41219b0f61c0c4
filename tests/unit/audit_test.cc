// The judgement of the output caching audit at its edges.

#include "coordinator/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::audit {
namespace {

using testing::HasSubstr;

TEST(OutputCachingAudit, ARateBelowTheLimitPassesAndTheLimitItselfDoesNot) {
  EXPECT_TRUE(judge({100, 100, 10}, {100, 100, 14.99}, 0.5).passed);
  EXPECT_FALSE(judge({100, 100, 10}, {100, 100, 15}, 0.5).passed);
  EXPECT_THAT(judge({100, 100, 10}, {100, 100, 15}, 0.5).reason, HasSubstr("is not below"));
}

TEST(OutputCachingAudit, EachPhaseMustHaveCompletedItsShare) {
  EXPECT_TRUE(judge({100, 50, 10}, {10, 5, 10}, 0.5).passed);
  EXPECT_FALSE(judge({100, 49, 10}, {10, 5, 10}, 0.5).passed);
  EXPECT_FALSE(judge({100, 50, 10}, {10, 4, 10}, 0.5).passed);
  EXPECT_THAT(judge({100, 49, 10}, {10, 5, 10}, 0.5).reason, HasSubstr("reference 49/100"));
}

TEST(OutputCachingAudit, TheFileHoldsWhatItWasJudgedBy) {
  const Verdict verdict = judge({4, 4, 10}, {8, 7, 12.5}, 0.25);
  EXPECT_FALSE(verdict.passed);
  const std::string json = json_of({4, 4, 10}, {8, 7, 12.5}, 0.25, verdict);
  for (const char* part : {"\"passed\": false", "\"ref_qps\": 10.0", "\"audit_qps\": 12.5",
                           "\"threshold\": 0.25", "\"ref_completed\": 4", "\"ref_requested\": 4",
                           "\"audit_completed\": 7", "\"audit_requested\": 8", "\"reason\": "}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

}  // namespace
}  // namespace tutti::audit
