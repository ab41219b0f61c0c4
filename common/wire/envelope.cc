#include "common/wire/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "common/base/check.h"
#include "common/wire/messages.h"

namespace tutti::wire {
namespace {

constexpr std::string_view kMagic = "tutt";

using HeaderBytes = std::array<char, kEnvelopeHeaderBytes>;

template <class T>
void put(HeaderBytes& out, std::size_t offset, T value) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(out.data() + offset, &value, sizeof(T));  // one store
    return;
  }
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[offset + i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
  }
}

template <class T>
T get(std::string_view bytes, std::size_t offset) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (std::endian::native == std::endian::little) {
    T whole = 0;
    std::memcpy(&whole, bytes.data() + offset, sizeof(T));  // one load
    return whole;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  }
  return static_cast<T>(value);
}

base::Id get_id(std::string_view bytes, std::size_t offset) {
  return {get<std::uint64_t>(bytes, offset), get<std::uint64_t>(bytes, offset + 8)};
}

auto refuse(std::string reason) {
  return base::fail(base::ExitCode::kExecution, "frame refused: " + std::move(reason));
}

// Magic and version come first and keep their place in every version, so that two sides of
// different versions can at least tell each other so.
bool begins_as_frame(std::string_view bytes) {
  return bytes.size() >= kMagic.size() + 2 && bytes.starts_with(kMagic);
}

}  // namespace

std::optional<std::uint16_t> foreign_version(std::string_view bytes) {
  if (!begins_as_frame(bytes)) {
    return std::nullopt;
  }
  const auto version = get<std::uint16_t>(bytes, kMagic.size());
  return version == kProtocolVersion ? std::nullopt : std::optional(version);
}

std::string encode_envelope(const Frame& frame) {
  TUTTI_CHECK(frame.payload.size() <= kPayloadBytesMax);
  HeaderBytes header;
  std::copy(kMagic.begin(), kMagic.end(), header.begin());
  put(header, 4, static_cast<std::uint16_t>(kProtocolVersion));
  put(header, 6, static_cast<std::uint8_t>(frame.plane));
  put(header, 7, std::uint8_t{0});
  put(header, 8, frame.from.high);
  put(header, 16, frame.from.low);
  put(header, 24, frame.to.high);
  put(header, 32, frame.to.low);
  put(header, 40, frame.number);
  put(header, 48, frame.ack);
  put(header, 56, static_cast<std::uint32_t>(frame.payload.size()));
  std::string out;
  out.reserve(header.size() + frame.payload.size());
  out.append(header.data(), header.size());
  if (!frame.payload.empty()) {
    out.append(frame.payload);
  }
  return out;
}

base::Result<Frame> decode_envelope(std::string_view bytes) {
  if (!begins_as_frame(bytes)) {
    return refuse(fmt::format("{} bytes that do not begin as a tutti frame", bytes.size()));
  }
  if (const auto version = foreign_version(bytes)) {
    return refuse(fmt::format(
        "the peer speaks protocol version {}, this side {}; install the same tutti on both sides",
        *version, kProtocolVersion));
  }
  if (bytes.size() < kEnvelopeHeaderBytes) {
    return refuse(
        fmt::format("{} bytes, shorter than the header of {}", bytes.size(), kEnvelopeHeaderBytes));
  }
  const auto plane = get<std::uint8_t>(bytes, 6);
  if (plane != static_cast<std::uint8_t>(Plane::kControl) &&
      plane != static_cast<std::uint8_t>(Plane::kData)) {
    return refuse(fmt::format("unknown plane {}", plane));
  }
  if (get<std::uint8_t>(bytes, 7) != 0) {
    return refuse("the reserved byte is not 0");
  }
  const auto length = get<std::uint32_t>(bytes, 56);
  if (length > kPayloadBytesMax) {
    return refuse(fmt::format("payload of {} bytes, more than {}", length, kPayloadBytesMax));
  }
  if (bytes.size() - kEnvelopeHeaderBytes != length) {
    return refuse(fmt::format("header announces {} payload bytes, {} came", length,
                              bytes.size() - kEnvelopeHeaderBytes));
  }
  Frame frame;
  frame.plane = static_cast<Plane>(plane);
  frame.from = get_id(bytes, 8);
  frame.to = get_id(bytes, 24);
  frame.number = get<std::uint64_t>(bytes, 40);
  frame.ack = get<std::uint64_t>(bytes, 48);
  if (!frame.from.is_set()) {
    return refuse("no sender");
  }
  if (frame.number == 0 && length > 0) {
    return refuse("a payload without a number");
  }
  frame.payload.assign(bytes.substr(kEnvelopeHeaderBytes));
  return frame;
}

}  // namespace tutti::wire
