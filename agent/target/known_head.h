#pragma once

// KnownHead: the header of the reply before. A server writes the same header again and again, but
// for the length of the body, and once a second the date. Where the next one has the same bytes
// around the digits of its Content-Length, what it says is known without reading its lines. Learnt
// only from a header that HttpReader read whole, so that both always say the same. One per worker;
// owned by its thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/target/worth_learning.h"

namespace tutti::target {

// What a header decides.
struct HeadFacts {
  std::int64_t content_length = -1;  // -1: not said
  int status = 0;
  bool http_1_0 = false;
  bool chunked = false;
  bool says_close = false;
  bool says_keep_alive = false;
};

class KnownHead {
 public:
  static constexpr std::size_t kBytesMax = 4096;

  // How many bytes of the front of `bytes` are the known header, blank line included; 0: none are.
  // Then facts() and content_type() hold.
  std::size_t match(std::string_view bytes);
  // `length`: the digits of the one Content-Length in `head`, or empty where it has none.
  void learn(std::string_view head, std::string_view length, const HeadFacts& facts,
             std::string_view content_type);

  const HeadFacts& facts() const { return facts_; }
  const std::string& content_type() const { return content_type_; }
  std::size_t lines() const { return lines_; }

 private:
  std::string before_;  // the digits; all of a header without a length
  std::string after_;
  std::string content_type_;
  HeadFacts facts_;
  std::size_t lines_ = 0;
  WorthLearning worth_;
};

}  // namespace tutti::target
