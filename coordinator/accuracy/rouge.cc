#include "coordinator/accuracy/rouge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/accuracy/porter.h"
#include "coordinator/accuracy/unicode.h"

namespace tutti::accuracy {
namespace {

using Words = std::vector<std::uint32_t>;

// Equal words have equal numbers, over all texts it reads.
class Reader {
 public:
  Words words(std::string_view text) {
    Words out;
    std::string word;
    for (const char32_t c : decoded(text)) {
      if (const char kept = word_letter(c); kept != 0) {
        word += kept;
      }
      if (word_letter(c) == 0 || c == kDottedI) {
        end_word(word, out);
      }
    }
    end_word(word, out);
    return out;
  }

 private:
  static constexpr char32_t kDottedI = 0x130;      // lower case: i and a mark, which ends the word
  static constexpr char32_t kKelvinSign = 0x212A;  // lower case: k

  // Lower-cased; 0: none.
  static char word_letter(char32_t c) {
    if ((c >= U'a' && c <= U'z') || (c >= U'0' && c <= U'9')) {
      return static_cast<char>(c);
    }
    if (c >= U'A' && c <= U'Z') {
      return static_cast<char>(c - U'A' + U'a');
    }
    return c == kDottedI ? 'i' : c == kKelvinSign ? 'k' : '\0';
  }

  void end_word(std::string& word, Words& out) {
    constexpr std::size_t kUnstemmedMax = 3;
    if (!word.empty()) {
      const auto number = static_cast<std::uint32_t>(numbers_.size());
      out.push_back(numbers_.emplace(word.size() > kUnstemmedMax ? stemmed(word) : word, number)
                        .first->second);
    }
    word.clear();
  }

  std::unordered_map<std::string, std::uint32_t> numbers_;
};

double f_measure(std::size_t hits, std::size_t predicted, std::size_t wanted) {
  if (hits == 0) {
    return 0;
  }
  const double precision = static_cast<double>(hits) / static_cast<double>(predicted);
  const double recall = static_cast<double>(hits) / static_cast<double>(wanted);
  return 2 * precision * recall / (precision + recall);
}

// Of each run of `n` words as many are met as both texts have.
double of_runs(const Words& reference, const Words& prediction, std::size_t n) {
  const auto runs = [n](const Words& words) {
    std::unordered_map<std::uint64_t, std::size_t> out;
    for (std::size_t i = 0; i + n <= words.size(); ++i) {
      const std::uint64_t second = n == 2 ? words[i + 1] : 0;
      ++out[std::uint64_t{words[i]} << 32U | second];
    }
    return out;
  };
  const auto wanted = runs(reference);
  std::size_t hits = 0;
  for (const auto& [run, count] : runs(prediction)) {
    const auto found = wanted.find(run);
    hits += found == wanted.end() ? 0 : std::min(found->second, count);
  }
  const auto total = [n](const Words& words) {
    return words.size() < n ? std::size_t{0} : words.size() - n + 1;
  };
  return f_measure(hits, total(prediction), total(reference));
}

std::size_t longest_common(const Words& a, const Words& b) {
  std::vector<std::uint32_t> row(b.size() + 1);
  for (const std::uint32_t word : a) {
    std::uint32_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::uint32_t above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

using Sentences = std::vector<Words>;

Sentences sentences_of(Reader& reader, std::string_view text) {
  Sentences out;
  while (true) {
    const std::size_t end = text.find('\n');
    if (const std::string_view line = text.substr(0, end); !line.empty()) {
      out.push_back(reader.words(line));
    }
    if (end == std::string_view::npos) {
      return out;
    }
    text.remove_prefix(end + 1);
  }
}

// Marks the words of `wanted` on one longest common subsequence with `got`: of several the one
// that is found when it is read from the end and a word of `wanted` is passed over first.
void mark_common(const Words& wanted, const Words& got, std::vector<bool>& marked) {
  enum Step : std::uint8_t { kBoth, kPassGot, kPassWanted };
  std::vector<Step> steps(wanted.size() * got.size());
  std::vector<std::uint32_t> row(got.size() + 1);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::uint32_t diagonal = 0;
    for (std::size_t j = 0; j < got.size(); ++j) {
      const std::uint32_t above = row[j + 1];
      const bool same = wanted[i] == got[j];
      steps[i * got.size() + j] = same ? kBoth : row[j] > above ? kPassGot : kPassWanted;
      row[j + 1] = same ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  for (std::size_t i = wanted.size(), j = got.size(); i > 0 && j > 0;) {
    const Step step = steps[(i - 1) * got.size() + j - 1];
    if (step == kBoth) {
      marked[i - 1] = true;
    }
    i -= step == kPassGot ? 0 : 1;
    j -= step == kPassWanted ? 0 : 1;
  }
}

std::size_t count_words(const Sentences& sentences,
                        std::unordered_map<std::uint32_t, std::size_t>& counts) {
  std::size_t all = 0;
  for (const Words& words : sentences) {
    all += words.size();
    for (const std::uint32_t word : words) {
      ++counts[word];
    }
  }
  return all;
}

}  // namespace

double rouge_lsum(std::string_view reference, std::string_view prediction) {
  Reader reader;
  const Sentences wanted = sentences_of(reader, reference);
  const Sentences got = sentences_of(reader, prediction);
  std::unordered_map<std::uint32_t, std::size_t> left_wanted;  // not yet counted as met
  std::unordered_map<std::uint32_t, std::size_t> left_got;
  const std::size_t all_wanted = count_words(wanted, left_wanted);
  const std::size_t all_got = count_words(got, left_got);
  std::size_t hits = 0;
  for (const Words& sentence : wanted) {
    std::vector<bool> marked(sentence.size());
    for (const Words& other : got) {
      mark_common(sentence, other, marked);
    }
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      std::size_t& here = left_wanted[sentence[i]];
      std::size_t& there = left_got[sentence[i]];
      if (marked[i] && here > 0 && there > 0) {
        ++hits;
        --here;
        --there;
      }
    }
  }
  return f_measure(hits, all_got, all_wanted);
}

RougeF rouge(std::string_view reference, std::string_view prediction) {
  Reader reader;
  const Words wanted = reader.words(reference);
  const Words got = reader.words(prediction);
  return {of_runs(wanted, got, 1), of_runs(wanted, got, 2),
          f_measure(longest_common(wanted, got), got.size(), wanted.size())};
}

}  // namespace tutti::accuracy
