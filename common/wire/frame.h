#pragma once

// Frame: the unit that travels between two incarnations, as a plain value. Link (link.h) makes and
// consumes frames, envelope.h turns one into bytes and back, sockets.h moves the bytes.
// A frame without a number carries only its acknowledgement: a heartbeat or a bare ack.

#include <cstdint>
#include <string>

#include "common/base/id.h"

namespace tutti::wire {

// How the payload is encoded: Protobuf for control, MessagePack for data. Zero is no plane on
// purpose.
enum class Plane : std::uint8_t { kControl = 1, kData = 2 };

struct Frame {
  base::Id from{};  // incarnation of the sender
  base::Id to{};    // incarnation meant; unset until the sender has heard from it
  std::uint64_t number =
      0;                  // position in this direction of the link, from 1; 0: nothing to deliver
  std::uint64_t ack = 0;  // every frame ≤ ack of the other direction has arrived
  Plane plane = Plane::kControl;
  std::string payload;  // empty when number is 0

  friend bool operator==(const Frame&, const Frame&) = default;
};

}  // namespace tutti::wire
