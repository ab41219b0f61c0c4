#include "common/wire/codec.h"

#include <array>
#include <variant>

#include "common/base/check.h"
#include "common/wire/control_codec.h"
#include "common/wire/data_codec.h"

namespace tutti::wire {

Encoded encode(const Message& message) {
  Encoded out;
  if (const auto* lease = std::get_if<Lease>(&message)) {
    out = {Plane::kData, encode_lease(*lease)};
  } else if (const auto* batch = std::get_if<RecordBatch>(&message)) {
    out = {Plane::kData, encode_records(*batch)};
  } else {
    out = {Plane::kControl, encode_control(message)};
  }
  TUTTI_CHECK(out.bytes.size() <= kPayloadBytesMax);
  return out;
}

base::Result<Message> decode(Plane plane, std::string_view bytes) {
  return plane == Plane::kData ? decode_data(bytes) : decode_control(bytes);
}

const char* name_of(const Message& message) {
  // In the order of Message.
  static constexpr std::array kNames = {
      "Dial",        "Hello",        "Welcome",   "Refused",  "ClockPing", "ClockPong",
      "Prepare",     "BodiesWanted", "BodyChunk", "Prepared", "ArmPhase",  "Armed",
      "Lease",       "Recall",       "Recalled",  "Drain",    "Drained",   "Abort",
      "RecordBatch", "BatchAck",     "Progress",  "Goodbye"};
  static_assert(kNames.size() == std::variant_size_v<Message>);
  return kNames[message.index()];
}

}  // namespace tutti::wire
