// base::Pcg64 against numpy: raw words of PCG64(seed), and integers(low, high, n) of one
// default_rng(seed) after another, so that the half word kept between calls is met.

#include "common/base/pcg64.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/conformance/random_vectors.h"

namespace tutti {
namespace {

using nlohmann::json;

TEST(Pcg64Vectors, RawWords) {
  std::size_t seen = 0;
  for (const json& each : conformance::load_vectors("pcg64.json")) {
    base::Pcg64 random(each.at("seed").get<std::uint64_t>());
    for (const json& word : each.at("raw")) {
      EXPECT_EQ(random.next_u64(), word.get<std::uint64_t>()) << each.at("seed");
      ++seen;
    }
  }
  EXPECT_EQ(seen, 28U);
}

TEST(Pcg64Vectors, BoundedIntegersInARow) {
  std::size_t seen = 0;
  for (const json& each : conformance::load_vectors("pcg64.json")) {
    base::Pcg64 random(each.at("seed").get<std::uint64_t>());
    for (const json& call : each.at("integers")) {
      const auto low = call.at("low").get<std::uint64_t>();
      for (const json& drawn : call.at("drawn")) {
        EXPECT_EQ(low + random.below(call.at("high").get<std::uint64_t>() - low),
                  drawn.get<std::uint64_t>())
            << each.at("seed") << " " << call;
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 7U * 35U);
}

}  // namespace
}  // namespace tutti
