// Any bytes, cut anywhere, give the same events as the bytes in one piece; nothing is read beyond
// the piece that was fed. The first two bytes choose the cuts and the size limit.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/sse.h"

namespace {

std::string parse(std::string_view bytes, std::size_t piece, std::size_t limit) {
  tutti::text::SseParser parser(limit);
  std::string said;
  const auto sink = [&said](const tutti::text::SseEvent& event) {
    said.append(event.type).append("\x1f").append(event.data).append("\x1f").append(event.comment);
    said += event.has_data ? "+\x1e" : "-\x1e";
  };
  bool good = true;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string_view part = bytes.substr(at, piece);
    const std::vector<char> copy(part.begin(), part.end());  // freed at once: stale views show
    good = parser.feed(std::string_view(copy.data(), copy.size()), sink) && good;
  }
  good = parser.finish(sink) && good;
  said += good ? "good" : "too large";
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t piece = 1 + data[0] % 16;
  const std::size_t limit = data[1] % 4 == 0 ? data[1] : std::size_t{1} << 20;
  const std::vector<char> body(data + 2, data + size);
  const std::string_view bytes(body.data(), body.size());
  const std::string whole = parse(bytes, bytes.size() + 1, limit);
  if (parse(bytes, piece, limit) != whole || parse(bytes, 1, limit) != whole) {
    std::abort();
  }
  return 0;
}
