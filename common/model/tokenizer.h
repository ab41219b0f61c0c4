#pragma once

// Tokenizer: a Hugging Face tokenizer.json, as the reference client's library reads it (it is that
// library). Loading is slow and done once; counting may be done from many threads at once. Needs a
// build with cargo; without one, open() fails with words that say so.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

struct TuttiTokenizer;

namespace tutti::model {

// Whether this build can count tokens at all.
bool has_tokenizers();

class Tokenizer {
 public:
  // `json`: the bytes of a tokenizer.json. `name` is for messages.
  static base::Result<Tokenizer> open(std::string_view json, std::string_view name);

  // Tokens of `text`: none are put around it, those written in it are taken as such.
  base::Result<std::uint64_t> count(std::string_view text) const;
  base::Result<std::vector<std::uint32_t>> encode(std::string_view text) const;
  base::Result<std::string> decode(std::span<const std::uint32_t> ids) const;
  std::size_t vocab_size(bool with_added = true) const;
  std::int64_t id_of(std::string_view token) const;  // -1: there is none

 private:
  struct Close {
    void operator()(TuttiTokenizer* tokenizer) const;
  };
  explicit Tokenizer(TuttiTokenizer* tokenizer) : tokenizer_(tokenizer) {}

  std::unique_ptr<TuttiTokenizer, Close> tokenizer_;
};

}  // namespace tutti::model
