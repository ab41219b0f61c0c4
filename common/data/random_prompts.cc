#include "common/data/random_prompts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/check.h"
#include "common/base/pcg64.h"
#include "common/data/dataset.h"

namespace tutti::data {
namespace {

using text::JsonKind;
using text::JsonValue;

// Reads one parameter; what is wrong goes to `problems`.
class Reader {
 public:
  explicit Reader(std::vector<std::string>& problems) : problems_(problems) {}

  void whole(const JsonValue& value, std::string_view name, std::uint64_t least, std::uint64_t most,
             std::uint64_t& out) {
    const bool negative = value.kind() == JsonKind::kInt && value.as_int() < 0;
    if (!value.is_integer() || negative || value.as_uint() < least || value.as_uint() > most) {
      wrong(name, value, fmt::format("must be a whole number from {} to {}", least, most));
      return;
    }
    out = value.as_uint();
  }

  void share(const JsonValue& value, std::string_view name, double& out) {
    const double number = value.is_number() ? value.as_double() : -1;
    if (!(number >= 0 && number <= 1)) {
      wrong(name, value, "must be a number from 0 to 1");
      return;
    }
    out = number;
  }

  void flag(const JsonValue& value, std::string_view name, bool& out) {
    if (value.kind() != JsonKind::kBool) {
      wrong(name, value, "must be true or false");
      return;
    }
    out = value.as_bool();
  }

  void word(const JsonValue& value, std::string_view name, std::string& out) {
    if (!value.is_string() || value.as_string().empty()) {
      wrong(name, value, "must be a path or the name of a model at the hub");
      return;
    }
    out = value.as_string();
  }

  void wrong(std::string_view name, const JsonValue& value, std::string_view why) {
    problems_.push_back(fmt::format("generate_params.{}: {} {}", name, value.to_json(), why));
  }

 private:
  std::vector<std::string>& problems_;
};

}  // namespace

base::Result<RandomPrompts> read_random_prompts(const JsonValue& params) {
  constexpr std::uint64_t kAnySeed = ~std::uint64_t{0};
  RandomPrompts out;
  std::vector<std::string> problems;
  Reader read(problems);
  for (const auto& [name, value] : params.members()) {
    if (name == "num_sequences") {
      read.whole(value, name, 1, kDatasetRowsMax, out.num_sequences);
    } else if (name == "input_seq_length") {
      read.whole(value, name, 1, kRandomLengthMax, out.input_seq_length);
    } else if (name == "range_ratio") {
      read.share(value, name, out.range_ratio);
    } else if (name == "random_seed") {
      read.whole(value, name, 0, kAnySeed, out.random_seed);
    } else if (name == "save_tokenized_data") {
      read.flag(value, name, out.save_tokenized_data);
    } else if (name == "tokenizer") {
      read.word(value, name, out.tokenizer);
    } else if (name != "force_regenerate" || value.kind() != JsonKind::kBool) {
      problems.push_back(
          fmt::format("generate_params.{}: data set 'random' has no such parameter; "
                      "remove it",
                      name));
    }
  }
  if (params.find("tokenizer") == nullptr) {
    problems.emplace_back(
        "generate_params.tokenizer: data set 'random' needs the tokenizer its prompts are made "
        "with: a folder with a tokenizer.json, or org/name at the hub");
  }
  if (!problems.empty()) {
    return base::fail(base::ExitCode::kInput, fmt::format("{}", fmt::join(problems, "\n")));
  }
  return out;
}

std::uint64_t shortest_of(const RandomPrompts& wanted) {
  return static_cast<std::uint64_t>(static_cast<double>(wanted.input_seq_length) *
                                    wanted.range_ratio);
}

std::vector<RandomSequence> draw_sequences(const RandomPrompts& wanted, std::uint64_t vocab) {
  TUTTI_CHECK(vocab > 0);
  const std::uint64_t least = shortest_of(wanted);
  base::Pcg64 random(wanted.random_seed);
  std::vector<RandomSequence> out(wanted.num_sequences);
  for (RandomSequence& each : out) {
    each.length = least + random.below(wanted.input_seq_length + 1 - least);
  }
  for (RandomSequence& each : out) {
    each.start = random.below(vocab);
  }
  return out;
}

void write_ids(const RandomSequence& sequence, std::uint64_t vocab,
               std::vector<std::uint32_t>& out) {
  out.clear();
  for (std::uint64_t j = 0; j < sequence.length; ++j) {
    out.push_back(static_cast<std::uint32_t>((sequence.start + j) % vocab));
  }
}

}  // namespace tutti::data
