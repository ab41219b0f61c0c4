#include "coordinator/ledger/texts.h"

#include <cstdint>

namespace tutti::ledger {
namespace {

constexpr std::uint8_t kHasContent = 1;
constexpr std::uint8_t kHasReasoning = 2;
constexpr std::uint8_t kHasRest = 4;

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(static_cast<std::uint8_t>(value) | 0x80U));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out.append(text);
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Reads forward and remembers the first failure, so that callers check once at the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    if (rest_.empty()) {
      ok_ = false;
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7FU) << shift;
      if (next < 0x80) {
        return value;
      }
    }
    ok_ = false;
    return 0;
  }

  void text(std::string& out) {
    const std::uint64_t size = varint();
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return;
    }
    out.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }

  bool ok() const { return ok_; }
  bool whole() const { return ok_ && rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

bool nothing_to_pack(const wire::Record& record) {
  const wire::OutputText& output = record.output;
  return record.error_message.empty() && record.finish_text.empty() && record.chunk_at.empty() &&
         output.content_first.empty() && output.content_rest.empty() &&
         output.reasoning_first.empty() && output.reasoning_rest.empty() &&
         output.tool_calls.empty() && !output.has_content && !output.has_reasoning &&
         !output.has_rest;
}

}  // namespace

void pack_texts(const wire::Record& record, std::string& out) {
  if (nothing_to_pack(record)) {
    return;
  }
  const wire::OutputText& output = record.output;
  std::uint8_t flags = 0;
  flags |= output.has_content ? kHasContent : std::uint8_t{0};
  flags |= output.has_reasoning ? kHasReasoning : std::uint8_t{0};
  flags |= output.has_rest ? kHasRest : std::uint8_t{0};
  out.push_back(static_cast<char>(flags));
  put_text(out, record.error_message);
  put_text(out, record.finish_text);
  put_text(out, output.content_first);
  put_text(out, output.content_rest);
  put_text(out, output.reasoning_first);
  put_text(out, output.reasoning_rest);
  put_text(out, output.tool_calls);
  put_varint(out, record.chunk_at.size());
  std::int64_t previous = 0;
  for (const base::Instant at : record.chunk_at) {
    put_varint(out, zigzag(at.ns - previous));
    previous = at.ns;
  }
}

bool unpack_texts(std::string_view bytes, Texts& out) {
  out.error_message.clear();
  out.finish_text.clear();
  out.output = {};
  out.chunk_at.clear();
  if (bytes.empty()) {
    return true;
  }
  Reader in(bytes);
  const std::uint8_t flags = in.byte();
  out.output.has_content = (flags & kHasContent) != 0;
  out.output.has_reasoning = (flags & kHasReasoning) != 0;
  out.output.has_rest = (flags & kHasRest) != 0;
  in.text(out.error_message);
  in.text(out.finish_text);
  in.text(out.output.content_first);
  in.text(out.output.content_rest);
  in.text(out.output.reasoning_first);
  in.text(out.output.reasoning_rest);
  in.text(out.output.tool_calls);
  const std::uint64_t chunks = in.varint();
  if (!in.ok() || chunks > in.left()) {
    return false;
  }
  out.chunk_at.reserve(chunks);
  std::int64_t previous = 0;
  for (std::uint64_t i = 0; i < chunks; ++i) {
    previous += unzigzag(in.varint());
    out.chunk_at.push_back(base::Instant{previous});
  }
  return in.whole();
}

}  // namespace tutti::ledger
