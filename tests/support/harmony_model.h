#pragma once

// The tiny model's tokenizer with the markers of Harmony added, ids from 520. Test code only.

#include <fstream>
#include <iterator>
#include <string>

namespace tutti::test {

inline std::string harmony_tokenizer_json() {
  std::ifstream file(TUTTI_SOURCE_DIR "/tests/support/tiny_model/tokenizer.json");
  std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string added;
  int id = 520;
  for (const char* marker : {"<|start|>", "<|message|>", "<|end|>"}) {
    added += R"({"id":)" + std::to_string(id++) + R"(,"content":")" + marker +
             R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
             R"("special":true},)";
  }
  const std::size_t key = json.find("\"added_tokens\"");
  return json.insert(json.find('[', key) + 1, added);
}

}  // namespace tutti::test
