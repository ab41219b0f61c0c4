#include "common/text/base64.h"

#include <cstddef>
#include <cstdint>

namespace tutti::text {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8U | (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= here ? kDigits[three >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace tutti::text
