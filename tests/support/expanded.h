#pragma once

// What an Expander makes of bytes that come in pieces, for its tests and its fuzzer.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/data/expander.h"

namespace tutti::test {

struct Expanded {
  std::string text;
  std::string error;
  bool ended_well = false;
};

inline Expanded expand(std::string_view bytes, std::size_t piece,
                       std::uint64_t unchecked = data::kUncheckedBytes) {
  data::Expander expander(unchecked);
  Expanded out;
  const auto sink = [&out](std::string_view text) {
    out.text.append(text);
    return true;
  };
  bool going = true;
  for (std::size_t at = 0; at < bytes.size() && going; at += piece) {
    going = expander.feed(bytes.substr(at, piece), sink);
  }
  out.ended_well = going && expander.finish(sink);
  out.error = expander.error();
  return out;
}

}  // namespace tutti::test
