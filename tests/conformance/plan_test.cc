// Orders, gaps, salts and counts against the reference client's: same seeds, same schedule.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "common/plan/arrivals.h"
#include "common/plan/count.h"
#include "common/plan/order.h"
#include "common/plan/salts.h"
#include "common/plan/schedule.h"
#include "tests/conformance/random_vectors.h"

namespace tutti {
namespace {

using conformance::csv;
using conformance::load_vectors;
using conformance::seed_of;
using conformance::sha256;
using nlohmann::json;
using Rows = std::vector<std::uint32_t>;

Rows draw(plan::SampleOrder& order, std::size_t n) {
  Rows out(n);
  for (auto& row : out) {
    row = order.next();
  }
  return out;
}

Rows slice(const Rows& rows, std::size_t from, std::size_t n) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(from);
  return Rows(begin, begin + static_cast<std::ptrdiff_t>(n));
}

void expect_order(plan::OrderKind kind, const json& expected) {
  const auto n = expected.at("n").get<std::uint32_t>();
  SCOPED_TRACE(expected.at("seed_name").get<std::string>() + ", n = " + std::to_string(n));
  plan::SampleOrder order(kind, n, seed_of(expected.at("seed").get<std::string>()));
  const Rows rows = draw(order, expected.at("draws_hashed").get<std::size_t>());
  EXPECT_EQ(slice(rows, 0, 50), expected.at("first50").get<Rows>());
  EXPECT_EQ(sha256(csv(rows)), expected.at("sha256_csv"));
  if (expected.contains("epoch2_first50")) {
    EXPECT_EQ(slice(rows, n - 10, 10), expected.at("epoch1_last10").get<Rows>());
    EXPECT_EQ(slice(rows, n, 50), expected.at("epoch2_first50").get<Rows>());
  }
}

TEST(OrderVectors, WithoutReplacementMatchesOverTwoEpochs) {
  const json file = load_vectors("sample_order_without_replacement.json");
  for (const json& expected : file.at("cases")) {
    expect_order(plan::OrderKind::kWithoutReplacement, expected);
  }
  EXPECT_EQ(file.at("cases").size(), 24U);
}

TEST(OrderVectors, WithReplacementMatches) {
  const json file = load_vectors("sample_order_with_replacement.json");
  for (const json& expected : file.at("cases")) {
    expect_order(plan::OrderKind::kWithReplacement, expected);
  }
  EXPECT_EQ(file.at("cases").size(), 20U);
}

TEST(GapVectors, TenThousandGapsAndTheirOffsetsMatchAtEveryRate) {
  const json file = load_vectors("poisson_gaps.json");
  for (const json& expected : file.at("cases")) {
    const auto qps = expected.at("target_qps").get<double>();
    SCOPED_TRACE(expected.at("seed_name").get<std::string>() + " at " + std::to_string(qps));
    plan::PoissonArrivals arrivals(qps, seed_of(expected.at("seed").get<std::string>()));
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i <= 10'000; ++i) {
      gaps.push_back(arrivals.next_gap_ns());
      // The reference's double accumulation, bit for bit …
      if (i <= 10) {
        const auto repr = expected.at("offsets_s_first10_repr").at(i - 1).get<std::string>();
        EXPECT_EQ(arrivals.offset_s(), std::strtod(repr.c_str(), nullptr)) << i;
      }
      if (i == 50) {
        const auto repr = expected.at("offset_s_50").get<std::string>();
        EXPECT_EQ(arrivals.offset_s(), std::strtod(repr.c_str(), nullptr));
      }
      // … whose nearest nanosecond is always the exact sum that commands carry.
      EXPECT_EQ(std::llround(arrivals.offset_s() * 1e9), arrivals.due_offset().ns) << i;
    }
    const std::vector<std::int64_t> first(gaps.begin(), gaps.begin() + 50);
    EXPECT_EQ(first, expected.at("gaps_ns_first50").get<std::vector<std::int64_t>>());
    EXPECT_EQ(sha256(csv(gaps)), expected.at("sha256_csv_10000"));
    const auto repr = expected.at("offset_s_10000").get<std::string>();
    EXPECT_EQ(arrivals.offset_s(), std::strtod(repr.c_str(), nullptr));
    EXPECT_EQ(std::to_string(arrivals.due_offset().ns), expected.at("sum_first_10000_ns"));
  }
  EXPECT_EQ(file.at("cases").size(), 24U);
}

// The three generators of a warm-up hang on W as the reference's do: one phase gives them all.
TEST(WarmupVectors, OneScheduleCarriesTheOrderTheSaltsAndTheGaps) {
  const json file = load_vectors("warmup.json");
  for (const json& expected : file.at("cases")) {
    const auto w = seed_of(expected.at("warmup_random_seed").get<std::string>());
    SCOPED_TRACE(w);
    const auto seeds = plan::warmup_seeds(w);
    ASSERT_TRUE(seeds.has_value());
    plan::PhaseSpec spec;
    spec.kind = base::PhaseKind::kWarmup;
    spec.pacing = base::Pacing::kTimed;
    spec.total = 1000;
    spec.dataset_rows = 1000;
    spec.order_seed = seeds->order;
    spec.gap_seed = seeds->gaps;
    spec.target_qps = 100.0;
    spec.salted = true;
    spec.salt_seed = seeds->salts;
    plan::Schedule schedule(spec);

    const auto rows = expected.at("order_n1000_first50").get<Rows>();
    const auto gaps = expected.at("poisson_100qps_first20_ns").get<std::vector<std::int64_t>>();
    const auto salts = expected.at("salts_first20").get<std::vector<std::string>>();
    std::string all_salts;
    std::int64_t due = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      const auto command = schedule.next();
      ASSERT_TRUE(command.has_value());
      EXPECT_TRUE(command->salted);
      all_salts += (i == 0 ? "" : ",") + plan::salt_hex(command->salt);
      if (i < rows.size()) {
        EXPECT_EQ(command->sample, rows[i]);
      }
      if (i < gaps.size()) {
        due += gaps[i];
        EXPECT_EQ(command->due_offset.ns, due);
        EXPECT_EQ(plan::salt_hex(command->salt), salts[i]);
      }
      if (i == 0) {
        EXPECT_EQ(std::string(plan::view(plan::salt_text(command->salt))) + "Hello",
                  expected.at("example_prompt_out"));
      }
    }
    EXPECT_EQ(sha256(all_salts), expected.at("salt_sha256_csv_1000"));

    plan::SampleOrder ten(plan::OrderKind::kWithoutReplacement, 10, seeds->order);
    EXPECT_EQ(draw(ten, 50), expected.at("order_n10_first50").get<Rows>());
  }
  EXPECT_EQ(file.at("cases").size(), 3U);
}

// The vectors are of the reference's earlier rule, which differs in its defaults only: a rate of 10
// and ten minutes where nothing was said. With these filled in, ours gives the same numbers.
TEST(CountVectors, EveryCaseMatchesWithTheEarlierDefaultsFilledIn) {
  const json file = load_vectors("sample_count.json");
  for (const json& expected : file.at("cases")) {
    SCOPED_TRACE(expected.dump());
    plan::CountSpec spec;
    spec.dataset_rows = expected.at("n_ds").get<std::uint32_t>();
    if (!expected.value("agentic", false)) {
      spec.target_qps = expected.value("qps", 10.0);
      spec.min_issue_ms = expected.value("min_ms", std::int64_t{600'000});
    }
    if (expected.contains("n_issue")) {
      spec.asked = expected.at("n_issue").get<std::uint64_t>();
    }
    const auto total = plan::total_samples(spec);
    ASSERT_TRUE(total.has_value()) << total.error().message;
    EXPECT_EQ(*total, expected.at("total").get<std::uint64_t>());
  }
  EXPECT_EQ(file.at("cases").size(), 12U);
}

}  // namespace
}  // namespace tutti
