#pragma once

// Tally: adds up how well the replies to one data set answer. Of every issued query exactly one of
// add() and add_missing() is called, in any order. Rules and quirks: docs/accuracy.md. One owner.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/text/json_read.h"
#include "coordinator/accuracy/method.h"
#include "coordinator/accuracy/punkt.h"
#include "coordinator/accuracy/rouge.h"

namespace tutti::accuracy {

// issued = scored + empty + missing.
struct ResponseCounts {
  std::uint64_t issued = 0;
  std::uint64_t scored = 0;   // completed with a text
  std::uint64_t empty = 0;    // completed with a blank one: all failures are
  std::uint64_t missing = 0;  // never completed

  friend bool operator==(const ResponseCounts&, const ResponseCounts&) = default;
};

// What hangs on NLTK's sentences.
struct RougeSentences {
  double rouge_lsum = 0;
  std::uint64_t characters = 0;  // of all completed texts as by_lines() has them
};

// Means over what was completed, times 100, rounded to four places.
struct RougeScore {
  double rouge1 = 0;
  double rouge2 = 0;
  double rouge_l = 0;
  std::uint64_t texts = 0;                       // completed
  std::optional<RougeSentences> sentences = {};  // nothing without a model of them
};

class Tally {
 public:
  // `punkt`: what ROUGE finds sentences by, and outlives this; null: it does without.
  explicit Tally(Method method, const PunktModel* punkt = nullptr)
      : method_(std::move(method)), punkt_(punkt) {}

  // `text`: reasoning, output and tool calls of a completed query, "" of a failed one.
  void add(const text::JsonValue& truth, std::string_view text);
  void add_missing();

  // 0 to 1, of all rules but kRouge. Nothing when no query was issued, or the truths cannot be
  // compared (see problem()).
  std::optional<double> score() const;
  // Of kRouge only. Nothing as with score(), and when no query was completed.
  std::optional<RougeScore> rouge_score() const;
  const ResponseCounts& counts() const { return counts_; }
  // Why there is no score although there were queries; else empty.
  const std::string& problem() const { return problem_; }

 private:
  void add_category(const text::JsonValue& truth, std::string_view text);
  void add_rouge(const text::JsonValue& truth, std::string_view text);

  Method method_;
  ResponseCounts counts_;
  std::uint64_t right_ = 0;
  std::uint64_t levels_equal_ = 0;  // kCategoryF1: over all completed
  std::uint64_t levels_predicted_ = 0;
  std::uint64_t levels_true_ = 0;
  const PunktModel* punkt_;
  RougeF rouge_sum_;  // kRouge: over all completed
  RougeSentences sentences_sum_;
  std::string problem_;
};

// Whether `truth` can be right at all under the method; a text that says why not, or empty.
std::string why_never_right(const Method& method, const text::JsonValue& truth);

}  // namespace tutti::accuracy
