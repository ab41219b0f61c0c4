#pragma once

// codec: any Message ⇄ payload bytes. Lease and RecordBatch go as MessagePack on the data plane,
// all others as Protobuf on the control plane. decode() of what encode() gave is equal in every
// field; of anything else it is a whole message or an error that says what is wrong, never a part,
// a crash or an allocation out of proportion to the input. Pure; any thread.

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/envelope.h"
#include "common/wire/frame.h"
#include "common/wire/messages.h"

namespace tutti::wire {

// Limits. Senders cut their messages to stay within; receivers refuse what is beyond.
inline constexpr std::size_t kControlBytesMax = std::size_t{8} << 20;    // one control message
inline constexpr std::size_t kBodyChunkBytesMax = std::size_t{4} << 20;  // BodyChunk.compressed
inline constexpr std::size_t kLeaseCommandsMax = std::size_t{1} << 18;
inline constexpr std::size_t kBatchRecordsMax = std::size_t{1} << 16;

struct Encoded {
  Plane plane = Plane::kControl;
  std::string bytes;
};

// The message must be within the limits above (programmer's error otherwise).
Encoded encode(const Message& message);

base::Result<Message> decode(Plane plane, std::string_view bytes);

// The message's name as its struct is called, for logs.
const char* name_of(const Message& message);

}  // namespace tutti::wire
