#include <gtest/gtest.h>

#include <limits>

#include "common/plan/count.h"

namespace tutti::plan {
namespace {

CountSpec rows(std::uint32_t n) {
  CountSpec spec;
  spec.dataset_rows = n;
  return spec;
}

TEST(TotalSamples, WithoutAnyWishIsOnePassOverTheDataSet) {
  EXPECT_EQ(total_samples(rows(1)).value(), 1U);
  EXPECT_EQ(total_samples(rows(4'294'967'295)).value(), 4'294'967'295U);
}

TEST(TotalSamples, ARateAloneDoesNotLengthenAPhase) {
  CountSpec spec = rows(1000);
  spec.target_qps = 100.0;
  EXPECT_EQ(total_samples(spec).value(), 1000U);
  spec.min_issue_ms = 0;
  EXPECT_EQ(total_samples(spec).value(), 1000U);
}

TEST(TotalSamples, AnExplicitCountWinsUnroundedEvenBelowTheDataSet) {
  CountSpec spec = rows(1000);
  spec.asked = 37;
  spec.target_qps = 100.0;
  spec.min_issue_ms = 600'000;
  EXPECT_EQ(total_samples(spec).value(), 37U);
}

TEST(TotalSamples, TheProductIsRoundedInTheReferencesOrder) {
  CountSpec spec = rows(1);
  spec.target_qps = 10.0;
  spec.min_issue_ms = 600'000;
  EXPECT_EQ(total_samples(spec).value(), 6601U);  // 10 · 600 · 1.1 = 6600.000000000001
}

TEST(TotalSamples, IsAWholeNumberOfPasses) {
  CountSpec spec = rows(1000);
  spec.target_qps = 1.0;
  spec.min_issue_ms = 1000;
  EXPECT_EQ(total_samples(spec).value(), 1000U);
  spec.min_issue_ms = 910'000;  // 1001 wanted
  EXPECT_EQ(total_samples(spec).value(), 2000U);
}

TEST(TotalSamples, RefusesWhatItCannotCountAndNamesTheRemedy) {
  const auto refusal = [](const CountSpec& spec) {
    const auto total = total_samples(spec);
    EXPECT_FALSE(total.has_value());
    return total ? std::string() : total.error().message;
  };
  EXPECT_NE(refusal(rows(0)).find("at least one row"), std::string::npos);

  CountSpec spec = rows(10);
  spec.min_issue_ms = 1000;
  EXPECT_NE(refusal(spec).find("needs a poisson load with target_qps"), std::string::npos);
  for (const double qps : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    spec.target_qps = qps;
    EXPECT_NE(refusal(spec).find("finite rate above 0"), std::string::npos) << qps;
  }
  spec.target_qps = 1.0;
  spec.min_issue_ms = -1;
  EXPECT_NE(refusal(spec).find("must not be negative"), std::string::npos);
  spec.target_qps = 1e300;
  spec.min_issue_ms = 1000;
  EXPECT_NE(refusal(spec).find("n_samples_to_issue"), std::string::npos);

  spec.asked = 0;
  EXPECT_NE(refusal(spec).find("between 1 and"), std::string::npos);
  spec.asked = kTotalMax + 1;
  EXPECT_NE(refusal(spec).find("between 1 and"), std::string::npos);
  spec.asked = kTotalMax;
  EXPECT_EQ(total_samples(spec).value(), kTotalMax);
}

}  // namespace
}  // namespace tutti::plan
