// Any bytes, cut anywhere, give the same text and the same end; and never much more text than a
// bomb's limit allows.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/support/expanded.h"

namespace {

constexpr std::uint64_t kUnchecked = 1 << 16;
// Checked once a block of expanded text.
constexpr std::uint64_t kBlock = std::uint64_t{256} << 10;

tutti::test::Expanded expand(std::string_view bytes, std::size_t piece) {
  auto out = tutti::test::expand(bytes, piece, kUnchecked);
  if (out.ended_well != out.error.empty()) {
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
  const auto whole = expand(bytes, bytes.size() + 1);
  const auto pieces = expand(bytes, 1 + data[0] % 16);
  // A bomb is noticed later or earlier, as its pieces come.
  const bool is_bomb = std::max(whole.text.size(), pieces.text.size()) > kUnchecked;
  if (!is_bomb &&
      (whole.ended_well != pieces.ended_well || (whole.ended_well && whole.text != pieces.text))) {
    std::abort();
  }
  if (whole.text.size() > kUnchecked + kBlock + (size + 1) * tutti::data::kRatioMax) {
    std::abort();
  }
  return 0;
}
