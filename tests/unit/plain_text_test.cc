#include "agent/target/plain_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::target {
namespace {

// Every byte at every place of texts of every length up to three words, beside every neighbour that
// could borrow from it or lend to it.
TEST(PlainText, IsWhatAByteByByteLookSays) {
  const auto plain = [](unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; };
  for (std::size_t size = 1; size <= 24; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        for (const char around : {'a', ' ', '#', ']', '\x7F'}) {
          std::string text(size, around);
          text[at] = static_cast<char>(byte);
          ASSERT_EQ(is_plain(text), plain(static_cast<unsigned char>(byte)))
              << size << ' ' << at << ' ' << byte;
        }
      }
    }
  }
  EXPECT_TRUE(is_plain(""));
}

TEST(PlainText, EndsWhereAByteByByteLookSays) {
  const auto plain = [](unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; };
  for (std::size_t size = 1; size <= 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, 'a');
        text[at] = static_cast<char>(byte);
        const char* const end = text.data() + size;
        ASSERT_EQ(plain_end(text.data(), end),
                  plain(static_cast<unsigned char>(byte)) ? end : text.data() + at)
            << size << ' ' << at << ' ' << byte;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::target
