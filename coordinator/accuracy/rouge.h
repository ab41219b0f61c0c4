#pragma once

// ROUGE as rouge_score computes it with its stemmer on: words are runs of a–z and 0–9 of the
// lower-case text, those of more than three letters stemmed; 1 and 2 compare n-grams, L the longest
// common subsequence; Lsum, of each sentence of the right text, what any sentence of the other has
// in common with it. Vectors made with rouge_score: tests/conformance/rouge.json. Pure.

#include <string_view>

namespace tutti::accuracy {

struct RougeF {
  double rouge1 = 0;  // F-measures, 0 to 1
  double rouge2 = 0;
  double rouge_l = 0;
};

RougeF rouge(std::string_view reference, std::string_view prediction);

// Lsum of texts with a line end between their sentences, as rouge_score does it: of the union of
// the common subsequences a word counts as often as both texts have it.
double rouge_lsum(std::string_view reference, std::string_view prediction);

}  // namespace tutti::accuracy
