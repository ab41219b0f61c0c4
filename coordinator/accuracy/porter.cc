#include "coordinator/accuracy/porter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace tutti::accuracy {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 14> kIrregular{{{"sky", "sky"},
                                           {"skies", "sky"},
                                           {"dying", "die"},
                                           {"lying", "lie"},
                                           {"tying", "tie"},
                                           {"news", "news"},
                                           {"innings", "inning"},
                                           {"inning", "inning"},
                                           {"outings", "outing"},
                                           {"outing", "outing"},
                                           {"cannings", "canning"},
                                           {"canning", "canning"},
                                           {"howe", "howe"},
                                           {"proceed", "proceed"}}};
constexpr std::array<std::string_view, 2> kKept{"exceed", "succeed"};

constexpr std::array<Pair, 20> kStep2{
    {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
     {"izer", "ize"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},
     {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
     {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
     {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"}}};
constexpr std::array<Pair, 7> kStep3{{{"icate", "ic"},
                                      {"ative", ""},
                                      {"alize", "al"},
                                      {"iciti", "ic"},
                                      {"ical", "ic"},
                                      {"ful", ""},
                                      {"ness", ""}}};
constexpr std::array<std::string_view, 19> kStep4{
    "al",  "ance", "ence", "er",  "ic",  "able", "ible", "ant", "ement", "ment",
    "ent", "ion",  "ou",   "ism", "ate", "iti",  "ous",  "ive", "ize"};

bool ends(std::string_view word, std::string_view suffix) {
  return word.size() >= suffix.size() && word.substr(word.size() - suffix.size()) == suffix;
}

std::string_view without(std::string_view word, std::size_t count) {
  return word.substr(0, word.size() - count);
}

bool is_vowel_letter(char c) { return std::string_view("aeiou").find(c) != std::string_view::npos; }

// A y is one when it stands first or after a vowel.
std::string consonants(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const bool vowel = is_vowel_letter(c) || (c == 'y' && !out.empty() && out.back() == 'c');
    out += vowel ? 'v' : 'c';
  }
  return out;
}

// How often a vowel is followed by a consonant: Porter's m.
std::size_t measure(std::string_view stem) {
  const std::string kinds = consonants(stem);
  std::size_t count = 0;
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    count += kinds[i - 1] == 'v' && kinds[i] == 'c' ? 1U : 0U;
  }
  return count;
}

bool has_vowel(std::string_view stem) { return consonants(stem).find('v') != std::string::npos; }

bool ends_double_consonant(std::string_view word) {
  return word.size() >= 2 && word.back() == word[word.size() - 2] && consonants(word).back() == 'c';
}

bool ends_cvc(std::string_view word) {
  const std::string kinds = consonants(word);
  return (ends(kinds, "cvc") && std::string_view("wxy").find(word.back()) == std::string::npos) ||
         kinds == "vc";
}

// The first rule whose suffix is there decides, whether its stem is long enough or not.
std::string first_rule(std::string_view word, std::span<const Pair> rules) {
  for (const auto& [suffix, other] : rules) {
    if (ends(word, suffix)) {
      const std::string_view stem = without(word, suffix.size());
      return measure(stem) > 0 ? std::string(stem).append(other) : std::string(word);
    }
  }
  return std::string(word);
}

std::string step1a(std::string_view word) {
  if (ends(word, "ies")) {
    return std::string(without(word, word.size() == 4 ? 1 : 2));
  }
  if (ends(word, "sses")) {
    return std::string(without(word, 2));
  }
  return std::string(ends(word, "s") && !ends(word, "ss") ? without(word, 1) : word);
}

// What is left of a word after -ed or -ing may need its e back, or lose a doubled letter.
std::string mended(std::string_view stem) {
  if (ends(stem, "at") || ends(stem, "bl") || ends(stem, "iz")) {
    return std::string(stem) + "e";
  }
  if (ends_double_consonant(stem)) {
    const bool keeps = std::string_view("lsz").find(stem.back()) != std::string_view::npos;
    return std::string(keeps ? stem : without(stem, 1));
  }
  return std::string(stem) + (measure(stem) == 1 && ends_cvc(stem) ? "e" : "");
}

std::string step1b(std::string_view word) {
  if (ends(word, "ied")) {
    return std::string(without(word, word.size() == 4 ? 1 : 2));
  }
  if (ends(word, "eed")) {
    return std::string(measure(without(word, 3)) > 0 ? without(word, 1) : word);
  }
  for (const std::string_view suffix : {"ed", "ing"}) {
    if (ends(word, suffix) && has_vowel(without(word, suffix.size()))) {
      return mended(without(word, suffix.size()));
    }
  }
  return std::string(word);
}

std::string step1c(std::string_view word) {
  if (ends(word, "y")) {
    const std::string_view stem = without(word, 1);
    if (stem.size() > 1 && consonants(stem).back() == 'c') {
      return std::string(stem) + "i";
    }
  }
  return std::string(word);
}

std::string step2(std::string_view word) {
  std::string kept(word);
  while (ends(kept, "alli") && measure(without(kept, 4)) > 0) {
    kept.resize(kept.size() - 2);
  }
  const bool known = std::any_of(kStep2.begin(), kStep2.end(),
                                 [&kept](const Pair& rule) { return ends(kept, rule.first); });
  if (known) {
    return first_rule(kept, kStep2);
  }
  if (ends(kept, "fulli")) {
    return measure(without(kept, 5)) > 0 ? std::string(without(kept, 2)) : kept;
  }
  // The l counts for the stem here, so that geologi and theologi are long enough.
  if (ends(kept, "logi") && measure(without(kept, 3)) > 0) {
    kept.pop_back();
  }
  return kept;
}

std::string step4(std::string_view word) {
  for (const std::string_view suffix : kStep4) {
    if (!ends(word, suffix)) {
      continue;
    }
    const std::string_view stem = without(word, suffix.size());
    const bool fits = suffix != "ion" || ends(stem, "s") || ends(stem, "t");
    return std::string(measure(stem) > 1 && fits ? stem : word);
  }
  return std::string(word);
}

std::string step5(std::string_view word) {
  std::string out(word);
  if (ends(out, "e")) {
    const std::string_view stem = without(out, 1);
    if (measure(stem) > 1 || (measure(stem) == 1 && !ends_cvc(stem))) {
      out.pop_back();
    }
  }
  if (ends(out, "ll") && measure(without(out, 1)) > 1) {
    out.pop_back();
  }
  return out;
}

}  // namespace

std::string stemmed(std::string_view word) {
  for (const auto& [irregular, stem] : kIrregular) {
    if (word == irregular) {
      return std::string(stem);
    }
  }
  if (word.size() <= 2 || std::find(kKept.begin(), kKept.end(), word) != kKept.end()) {
    return std::string(word);
  }
  return step5(step4(first_rule(step2(step1c(step1b(step1a(word)))), kStep3)));
}

}  // namespace tutti::accuracy
