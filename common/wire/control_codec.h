#pragma once

// control_codec: control messages ⇄ Protobuf (proto/tutti/v1/control.proto). See codec.h for what
// decoding promises. Pure; any thread.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/messages.h"

namespace tutti::wire {

// Any message but Lease and RecordBatch; at most kControlBytesMax come out.
std::string encode_control(const Message& message);

base::Result<Message> decode_control(std::string_view bytes);

}  // namespace tutti::wire
