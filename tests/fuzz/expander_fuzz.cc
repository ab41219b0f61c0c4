// Any bytes, cut anywhere, give the same text and the same end; and never much more text than a
// bomb's limit allows.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/data/expander.h"

namespace {

constexpr std::uint64_t kUnchecked = 1 << 16;
// Checked once a block of expanded text.
constexpr std::uint64_t kBlock = std::uint64_t{256} << 10;

struct Read {
  std::string text;
  bool ended_well = false;
  bool zstd = false;
};

Read expand(std::string_view bytes, std::size_t piece) {
  tutti::data::Expander expander(kUnchecked);
  Read out;
  const auto sink = [&out](std::string_view text) {
    out.text.append(text);
    return true;
  };
  bool going = true;
  for (std::size_t at = 0; at < bytes.size() && going; at += piece) {
    going = expander.feed(bytes.substr(at, piece), sink);
  }
  out.ended_well = going && expander.finish(sink);
  out.zstd = expander.packing() == tutti::data::Packing::kZstd;
  if (out.ended_well != expander.error().empty()) {
    std::abort();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = expand(bytes, bytes.size() + 1);
  const Read pieces = expand(bytes, 1 + data[0] % 16);
  // A bomb is noticed later or earlier, as its pieces come.
  const bool is_bomb = std::max(whole.text.size(), pieces.text.size()) > kUnchecked;
  // libzstd judges some damaged frames otherwise when it sees all of one at once.
  const bool same_end = whole.ended_well == pieces.ended_well;
  const bool both_well = whole.ended_well && pieces.ended_well;
  if (!is_bomb && ((!same_end && !whole.zstd) || (both_well && whole.text != pieces.text))) {
    std::abort();
  }
  if (whole.text.size() > kUnchecked + kBlock + (size + 1) * tutti::data::kRatioMax) {
    std::abort();
  }
  return 0;
}
