#pragma once

// Sentences of a text as NLTK's sent_tokenize finds them: Kiss and Strunk's Punkt (Unsupervised
// Multilingual Sentence Boundary Detection, Computational Linguistics 32:4, 2006) with what NLTK
// learned of English, which is data of NLTK's and read from its files. Only places with one of
// . ? ! are looked at, each by the word before and the word behind it. Follows NLTK 3.10: earlier
// ones do not know ‘ ’ “ ” « » as closing marks. Vectors made with NLTK:
// tests/conformance/punkt.json. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/result.h"

namespace tutti::accuracy {

// The four files of punkt_tab/english.
struct PunktTexts {
  std::string abbreviations;   // abbrev_types.txt
  std::string starters;        // sent_starters.txt
  std::string collocations;    // collocations.tab
  std::string ortho_contexts;  // ortho_context.tab
};

struct PunktModel {
  std::unordered_set<std::u32string> abbreviations;  // without their last period
  std::unordered_set<std::u32string> starters;       // words that often begin a sentence
  std::unordered_set<std::u32string> collocations;   // "first\tsecond", a period between them
  std::unordered_map<std::u32string, std::uint32_t> ortho_contexts;  // where in which case it was
};

// A line that is none of its file's is an error that names both.
base::Result<PunktModel> read_punkt(const PunktTexts& texts);

// Without white space at both ends, in order. Views of `text`.
std::vector<std::u32string_view> sentences(const PunktModel& model, std::u32string_view text);

// The text as it is scored: trimmed, a line end between its sentences.
std::u32string by_lines(const PunktModel& model, std::u32string_view text);

}  // namespace tutti::accuracy
