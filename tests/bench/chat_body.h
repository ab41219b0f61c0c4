#pragma once

// The request every client of a benchmark sends: one chat message of a chosen size. Raw client and
// engine must send the same bytes, or their ratio means nothing.

#include <cstddef>
#include <string>

namespace tutti::bench {

// Exactly `bytes` long, or as short as the frame allows.
inline std::string chat_body(std::size_t bytes, bool stream) {
  std::string body = R"({"model":"m","messages":[{"role":"user","content":")";
  const std::string close = stream ? R"("}],"stream":true})" : R"("}]})";
  const std::size_t frame = body.size() + close.size();
  body.append(bytes > frame ? bytes - frame : 1, 'x');
  return body + close;
}

}  // namespace tutti::bench
