// Any bytes, cut anywhere, read as the same reply: status, type, body, end, problem. The first byte
// chooses the cuts, the second the limits. Bytes of 0xFF part replies of one connection: what is
// learnt of one makes no difference to the next.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/http_reader.h"
#include "agent/target/known_head.h"

namespace {

using tutti::target::HttpLimits;
using tutti::target::HttpReader;
using tutti::target::KnownHead;

std::string read(std::string_view bytes, std::size_t piece, const HttpLimits& limits,
                 KnownHead* known = nullptr) {
  HttpReader reader(limits, known);
  reader.start();
  std::string said;
  std::string body_seen;
  std::size_t taken = 0;
  bool over = false;
  for (std::size_t at = 0; at < bytes.size() && !over; at += piece) {
    const std::string_view part = bytes.substr(at, piece);
    const std::vector<char> copy(part.begin(), part.end());  // freed at once: stale views show
    std::string_view rest(copy.data(), copy.size());
    for (bool going = true; going;) {
      std::string_view body;
      const std::size_t before = rest.size();
      const auto found = reader.next(rest, body);
      taken += before - rest.size();
      switch (found) {
        case HttpReader::Found::kHead:
          said += std::to_string(reader.status()) + std::string(reader.content_type()) + "\x1e";
          break;
        case HttpReader::Found::kBody:
          if (body.empty()) {
            std::abort();  // would spin
          }
          body_seen += body;
          break;
        case HttpReader::Found::kDone:
          said += "done at " + std::to_string(taken) + (reader.keeps_alive() ? "+" : "-");
          over = true;
          going = false;
          break;
        case HttpReader::Found::kBad:
          over = true;
          going = false;
          break;
        case HttpReader::Found::kMore:
          if (!rest.empty()) {
            std::abort();  // lost
          }
          going = false;
          break;
      }
    }
  }
  if (body_seen.size() > bytes.size()) {
    std::abort();
  }
  const auto ending = static_cast<int>(reader.finish());
  return said + "\x1e" + body_seen + "\x1e" + reader.problem() + "\x1e" + std::to_string(ending) +
         "\x1e" + std::to_string(reader.header_bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t piece = 1 + data[0] % 16;
  HttpLimits limits;
  if (data[1] % 4 == 0) {
    limits.line_bytes_max = 16 + data[1];
    limits.head_bytes_max = 64 + data[1];
    limits.chunk_line_bytes_max = 1 + data[1] / 8;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = read(bytes, std::max<std::size_t>(bytes.size(), 1), limits);
  if (read(bytes, piece, limits) != whole || read(bytes, 1, limits) != whole) {
    std::abort();
  }
  KnownHead known;
  for (std::string_view left = bytes; !left.empty();) {
    const std::string_view reply = left.substr(0, left.find('\xFF'));
    left.remove_prefix(std::min(reply.size() + 1, left.size()));
    const std::size_t all = std::max<std::size_t>(reply.size(), 1);
    for (int round = 0; round < 2; ++round) {
      if (read(reply, all, limits, &known) != read(reply, all, limits)) {
        std::abort();
      }
    }
  }
  return 0;
}
