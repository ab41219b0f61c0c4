// base::Mt19937 against CPython's random.Random: 14 seeds, state after seeding, every kind of draw.

#include "common/base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "tests/conformance/random_vectors.h"

namespace tutti {
namespace {

using base::Mt19937;
using nlohmann::json;

__extension__ using Wide = unsigned __int128;

std::string decimal(Wide value) {
  std::string out;
  do {
    out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  return out;
}

class Mt19937Vectors : public testing::Test {
 protected:
  // Runs `judge` on each seed's block, with the seed.
  template <class Judge>
  void for_each_seed(const Judge& judge) {
    const json file = conformance::load_vectors("mt19937_core.json");
    std::size_t seen = 0;
    for (const auto& item : file.at("seeds").items()) {
      SCOPED_TRACE(item.key());
      judge(conformance::seed_of(item.value().at("seed").get<std::string>()), item.value());
      ++seen;
    }
    EXPECT_EQ(seen, 14U);
  }
};

TEST_F(Mt19937Vectors, StateAfterSeedingMatchesWordByWord) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    const Mt19937 random(seed);
    const auto& state = random.state();
    const std::vector<std::uint32_t> words(state.begin(), state.end());
    const std::vector<std::uint32_t> first(words.begin(), words.begin() + 4);
    const std::vector<std::uint32_t> last(words.end() - 4, words.end());
    EXPECT_EQ(first, expected.at("state_first4").get<std::vector<std::uint32_t>>());
    EXPECT_EQ(last, expected.at("state_last4").get<std::vector<std::uint32_t>>());
    EXPECT_EQ(conformance::sha256(conformance::csv(words)), expected.at("state_sha256_csv"));
  });
}

TEST_F(Mt19937Vectors, WordsMatchThroughTwoRefills) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    Mt19937 random(seed);
    std::vector<std::uint32_t> words(1300);
    for (auto& word : words) {
      word = random.next_u32();
    }
    const std::vector<std::uint32_t> first(words.begin(), words.begin() + 10);
    EXPECT_EQ(first, expected.at("getrandbits32_first10").get<std::vector<std::uint32_t>>());
    const std::vector<std::uint32_t> far = {words[623], words[624], words[1247], words[1248],
                                            words[1299]};
    EXPECT_EQ(far, expected.at("getrandbits32_index_623_624_1247_1248_1299")
                       .get<std::vector<std::uint32_t>>());
  });
}

TEST_F(Mt19937Vectors, DoublesMatchBitForBit) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    Mt19937 random(seed);
    for (const auto& hex : expected.at("random_first10_hex")) {
      const double value = std::strtod(hex.get<std::string>().c_str(), nullptr);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(random.next_double()),
                std::bit_cast<std::uint64_t>(value));
    }
  });
}

TEST_F(Mt19937Vectors, SixtyFourBitDrawsMatch) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    Mt19937 random(seed);
    for (const auto& value : expected.at("getrandbits64_first5")) {
      EXPECT_EQ(random.next_bits(64), conformance::seed_of(value.get<std::string>()));
    }
  });
}

TEST_F(Mt19937Vectors, MixedWidthsMatchInOneStream) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    Mt19937 random(seed);
    const auto widths = expected.at("getrandbits_mixed").at("k").get<std::vector<int>>();
    const auto values =
        expected.at("getrandbits_mixed").at("value").get<std::vector<std::string>>();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= 64) {
        EXPECT_EQ(random.next_bits(widths[i]), conformance::seed_of(values[i])) << widths[i];
        continue;
      }
      ASSERT_EQ(widths[i], 128);  // ours go to 64: two of them, the low half first
      Wide whole = random.next_bits(64);
      whole |= Wide{random.next_bits(64)} << 64;
      EXPECT_EQ(decimal(whole), values[i]);
    }
  });
}

TEST_F(Mt19937Vectors, BoundedDrawsMatchIncludingPowersOfTwo) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    Mt19937 random(seed);
    const auto bounds = expected.at("randbelow_seq").at("n").get<std::vector<std::uint64_t>>();
    const auto values = expected.at("randbelow_seq").at("value").get<std::vector<std::uint64_t>>();
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      EXPECT_EQ(random.below(bounds[i]), values[i]) << bounds[i];
    }
  });
}

TEST_F(Mt19937Vectors, ByteStringsMatch) {
  for_each_seed([](std::uint64_t seed, const json& expected) {
    Mt19937 random(seed);
    for (const auto& hex : expected.at("randbytes8_hex_first5")) {
      std::string printed;
      for (const std::uint8_t byte : random.bytes(8)) {
        printed += "0123456789abcdef"[byte >> 4];
        printed += "0123456789abcdef"[byte & 15];
      }
      EXPECT_EQ(printed, hex.get<std::string>());
    }
  });
}

}  // namespace
}  // namespace tutti
