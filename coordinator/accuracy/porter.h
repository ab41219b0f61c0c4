#pragma once

// The Porter stemmer with NLTK's extensions, which rouge_score uses: Porter, "An algorithm for
// suffix stripping" (1980), plus a short table of irregular words and a few kinder rules. Vectors
// made with NLTK: tests/conformance/porter.json. Pure.

#include <string>
#include <string_view>

namespace tutti::accuracy {

// `word`: lower-case ASCII letters and digits.
std::string stemmed(std::string_view word);

}  // namespace tutti::accuracy
