#pragma once

// Envelope: the bytes of a Frame. A fixed little-endian header, then the payload; one frame is one
// ZeroMQ message. decode() takes nothing on trust: wrong magic, another protocol version, unknown
// plane, a length that does not match and anything oversized are refused with the reason.
// Pure; any thread. Layout and versioning rule: docs/protocol.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/frame.h"

namespace tutti::wire {

//  0  4  magic "tutt"
//  4  2  protocol version
//  6  1  plane
//  7  1  reserved, 0
//  8 16  from (high word, low word)
// 24 16  to
// 40  8  number
// 48  8  ack
// 56  4  payload length
// 60  …  payload
inline constexpr std::size_t kEnvelopeHeaderBytes = 60;
inline constexpr std::size_t kPayloadBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kEnvelopeBytesMax = kEnvelopeHeaderBytes + kPayloadBytesMax;

// The frame's payload must not exceed kPayloadBytesMax (encode() of codec.h keeps that).
std::string encode_envelope(const Frame& frame);

base::Result<Frame> decode_envelope(std::string_view bytes);

// The protocol version of a frame that is of another one than ours; none for all other bytes. Who
// gets such a frame answers with a bare frame of its own, so that both sides can say what is wrong.
std::optional<std::uint16_t> foreign_version(std::string_view bytes);

// Whom a host has told so: once per connection, since the other side answers likewise. Bounded;
// beyond that strangers get no answer.
class VersionReplies {
 public:
  static constexpr std::size_t kMax = 4096;
  // True: a bare frame of ours (number 0, no payload) is to go back on `route` now.
  bool owed(std::string_view bytes, const std::string& route) {
    return foreign_version(bytes) && told_.size() < kMax && told_.insert(route).second;
  }

 private:
  std::set<std::string> told_;
};

}  // namespace tutti::wire
