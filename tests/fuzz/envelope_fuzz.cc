// Any bytes: a frame or a reason; a frame gives the same bytes again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/wire/envelope.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto frame = tutti::wire::decode_envelope(bytes);
  if (frame) {
    TUTTI_CHECK(tutti::wire::encode_envelope(*frame) == bytes);
  } else {
    TUTTI_CHECK(!frame.error().message.empty());
  }
  return 0;
}
