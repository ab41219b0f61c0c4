#include "common/model/tokenizer.h"

#include <fmt/format.h>

#include <cstring>

#include "common/rust/abi.h"
#include "common/rust/rust_bytes.h"

namespace tutti::model {

bool has_tokenizers() { return tutti_rust_present(); }

void Tokenizer::Close::operator()(TuttiTokenizer* tokenizer) const {
  tutti_tokenizer_close(tokenizer);
}

base::Result<Tokenizer> Tokenizer::open(std::string_view json, std::string_view name) {
  rust::RustBytes error;
  TuttiTokenizer* const tokenizer = tutti_tokenizer_open(json.data(), json.size(), error.out());
  if (tokenizer == nullptr) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: no tokenizer: {}", name, error.text()));
  }
  return Tokenizer(tokenizer);
}

base::Result<std::uint64_t> Tokenizer::count(std::string_view text) const {
  rust::RustBytes error;
  const std::int64_t tokens =
      tutti_tokenizer_count(tokenizer_.get(), text.data(), text.size(), error.out());
  if (tokens < 0) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("tokens cannot be counted: {}", error.text()));
  }
  return static_cast<std::uint64_t>(tokens);
}

base::Result<std::vector<std::uint32_t>> Tokenizer::encode(std::string_view text) const {
  rust::RustBytes ids;
  rust::RustBytes error;
  if (!tutti_tokenizer_encode(tokenizer_.get(), text.data(), text.size(), ids.out(), error.out())) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("text cannot be made tokens: {}", error.text()));
  }
  std::vector<std::uint32_t> out(ids.text().size() / sizeof(std::uint32_t));
  std::memcpy(out.data(), ids.text().data(), out.size() * sizeof(std::uint32_t));
  return out;
}

base::Result<std::string> Tokenizer::decode(std::span<const std::uint32_t> ids) const {
  rust::RustBytes text;
  rust::RustBytes error;
  if (!tutti_tokenizer_decode(tokenizer_.get(), ids.data(), ids.size(), text.out(), error.out())) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("tokens cannot be made text: {}", error.text()));
  }
  return std::string(text.text());
}

std::size_t Tokenizer::vocab_size(bool with_added) const {
  return tutti_tokenizer_vocab_size(tokenizer_.get(), with_added);
}

std::int64_t Tokenizer::id_of(std::string_view token) const {
  return tutti_tokenizer_id(tokenizer_.get(), token.data(), token.size());
}

}  // namespace tutti::model
