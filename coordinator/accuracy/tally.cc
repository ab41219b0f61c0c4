#include "coordinator/accuracy/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

// The levels of a category path, from the root.
std::vector<std::string> levels_of(std::string_view path, std::string_view separator) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t at = path.find(separator);
    out.push_back(trimmed(path.substr(0, at)));
    if (at == std::string_view::npos) {
      return out;
    }
    path.remove_prefix(at + separator.size());
  }
}

// The category of a reply that is, as a whole, {category, brand, is_secondhand}.
std::optional<std::string> category_of(std::string_view reply) {
  const auto value = text::read_json(reply);
  if (!value || !value->is_object() || value->members().size() != 3) {
    return std::nullopt;
  }
  const auto* category = value->find("category");
  const auto* brand = value->find("brand");
  const auto* secondhand = value->find("is_secondhand");
  const bool good = category != nullptr && category->is_string() && brand != nullptr &&
                    brand->is_string() && secondhand != nullptr &&
                    secondhand->kind() == text::JsonKind::kBool;
  return good ? std::optional(trimmed(category->as_string())) : std::nullopt;
}

}  // namespace

void Tally::add(const text::JsonValue& truth, std::string_view text) {
  ++counts_.issued;
  ++(trimmed(text).empty() ? counts_.empty : counts_.scored);
  if (method_.rule == Rule::kCategoryF1) {
    add_category(truth, text);
    return;
  }
  if (method_.rule == Rule::kRouge) {
    add_rouge(truth, text);
    return;
  }
  const auto answer = extract(method_.extractor, text);
  if (!answer || !truth.is_string()) {
    return;
  }
  const bool right = method_.rule == Rule::kPassAt1
                         ? *answer == truth.as_string()
                         : trimmed(*answer) == trimmed(truth.as_string());
  right_ += right ? 1U : 0U;
}

void Tally::add_missing() {
  ++counts_.issued;
  ++counts_.missing;
}

// A reply that is no category counts as a path as deep as the true one in which nothing is right.
void Tally::add_category(const text::JsonValue& truth, std::string_view text) {
  if (!truth.is_string()) {
    problem_ = why_never_right(method_, truth);
    return;
  }
  const auto truths = levels_of(truth.as_string(), method_.separator);
  levels_true_ += truths.size();
  const auto category = category_of(text);
  if (!category) {
    levels_predicted_ += truths.size();
    return;
  }
  const auto predicted = levels_of(*category, method_.separator);
  levels_predicted_ += predicted.size();
  const auto differ =
      std::mismatch(truths.begin(), truths.end(), predicted.begin(), predicted.end());
  levels_equal_ += static_cast<std::uint64_t>(differ.first - truths.begin());
}

void Tally::add_rouge(const text::JsonValue& truth, std::string_view text) {
  if (!truth.is_string()) {
    problem_ = why_never_right(method_, truth);
    return;
  }
  const RougeF found = rouge(truth.as_string(), text);
  rouge_sum_.rouge1 += found.rouge1;
  rouge_sum_.rouge2 += found.rouge2;
  rouge_sum_.rouge_l += found.rouge_l;
  if (punkt_ != nullptr) {
    const std::u32string lines = by_lines(*punkt_, decoded(text));
    const std::u32string wanted = by_lines(*punkt_, decoded(truth.as_string()));
    sentences_sum_.rouge_lsum += rouge_lsum(encoded(wanted), encoded(lines));
    sentences_sum_.characters += lines.size();
  }
}

std::optional<RougeScore> Tally::rouge_score() const {
  const std::uint64_t texts = counts_.issued - counts_.missing;
  if (method_.rule != Rule::kRouge || texts == 0 || !problem_.empty()) {
    return std::nullopt;
  }
  const auto mean = [texts](double sum) {
    return std::nearbyint(sum / static_cast<double>(texts) * 100 * 1e4) / 1e4;
  };
  RougeScore out{mean(rouge_sum_.rouge1), mean(rouge_sum_.rouge2), mean(rouge_sum_.rouge_l), texts};
  if (punkt_ != nullptr) {
    out.sentences = {mean(sentences_sum_.rouge_lsum), sentences_sum_.characters};
  }
  return out;
}

std::optional<double> Tally::score() const {
  if (counts_.issued == 0 || !problem_.empty() || method_.rule == Rule::kRouge) {
    return std::nullopt;
  }
  if (method_.rule != Rule::kCategoryF1) {
    return static_cast<double>(right_) / static_cast<double>(counts_.issued);
  }
  if (levels_equal_ == 0) {
    return 0.0;
  }
  const double equal = static_cast<double>(levels_equal_);
  const double precision = equal / static_cast<double>(levels_predicted_);
  const double recall = equal / static_cast<double>(levels_true_);
  return 2 * precision * recall / (precision + recall);
}

std::string why_never_right(const Method& method, const text::JsonValue& truth) {
  if (truth.is_string()) {
    return {};
  }
  return fmt::format("column '{}' holds {} ({}) where a text is compared", method.truth_column,
                     truth.is_null() ? "nothing" : truth.to_json(), truth.kind_name());
}

}  // namespace tutti::accuracy
