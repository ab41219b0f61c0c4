// Any bytes: a lease or a record batch or a reason; a message survives the way to bytes and back.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/wire/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tutti::wire::Plane;
  const auto message =
      tutti::wire::decode(Plane::kData, {reinterpret_cast<const char*>(data), size});
  if (!message) {
    TUTTI_CHECK(!message.error().message.empty());
    return 0;
  }
  const auto encoded = tutti::wire::encode(*message);
  const auto again = tutti::wire::decode(encoded.plane, encoded.bytes);
  TUTTI_CHECK(again.has_value());
  // By bytes: a NaN is not equal to itself.
  TUTTI_CHECK(tutti::wire::encode(*again).bytes == encoded.bytes);
  return 0;
}
