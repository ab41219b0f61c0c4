#include "agent/target/direct_call.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "agent/target/credentials.h"
#include "agent/target/record_start.h"

namespace tutti::target {
namespace {

void add_relaxed(std::atomic<std::uint64_t>& gauge, std::uint64_t n) {
  gauge.store(gauge.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

constexpr std::string_view kDigits = "0123456789abcdef";

// "[", 16 hex digits, "] ".
std::string_view write_salt(std::array<char, 19>& text, std::uint64_t salt) {
  text.front() = '[';
  for (std::size_t i = 0; i < 16; ++i) {
    text[1 + i] = kDigits[salt >> (60 - 4 * i) & 0xF];
  }
  text[17] = ']';
  text[18] = ' ';
  return {text.data(), text.size()};
}

// The mark of a conversation's pass: "[salt: ", 4 hex digits; the body goes on with "]".
std::string_view write_mark(std::array<char, 19>& text, std::uint64_t mark) {
  constexpr std::string_view kHead = "[salt: ";
  char* end = std::copy(kHead.begin(), kHead.end(), text.data());
  for (std::size_t i = 0; i < 4; ++i) {
    *end++ = kDigits[mark >> (12 - 4 * i) & 0xF];
  }
  return {text.data(), static_cast<std::size_t>(end - text.data())};
}

}  // namespace

DirectCall::DirectCall(const DirectShared& shared)
    : shared_(shared),
      reply_(shared.config->target->api, shared.config->videos, shared.known_form),
      reader_({}, shared.known_head) {}

void DirectCall::begin(const Query& query, base::Instant now) {
  begin_record(*record_, query, shared_.config->worker);
  started_at_ = now;
  allowed_ = time_allowed(*shared_.config->target, query);
  last_stamp_ = {};
  sent_bytes_ = 0;
  body_bytes_down_ = 0;
  events_told_ = 0;
  connection = nullptr;
  send_error = 0;
  waits_for_name = false;
  wait.on = false;
  wait.let_in = false;
  ended = false;
  set_body(query);
  reader_.start();
  reply_.start(shared_.config->target->streaming, shared_.config->target->stamp_every_chunk);
}

// ---- the request -----------------------------------------------------------------------------

void DirectCall::add_part(std::string_view bytes) {
  if (!bytes.empty()) {
    // sendmsg only reads.
    parts_[part_count_++] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
}

void DirectCall::set_body(const Query& query) {
  part_ = 0;
  part_count_ = 0;
  const data::BodyRow row = shared_.config->bodies->row(query.command.sample);
  std::string_view salt;
  if (query.command.salted && row.splice >= 0) {
    salt = query.conversation != nullptr ? write_mark(salt_text_, query.command.salt)
                                         : write_salt(salt_text_, query.command.salt);
  }
  const std::size_t bytes = row.body.size() + salt.size();
  char* end = length_text_.data();
  if (!shared_.config->target->affinity_header.empty()) {
    end = std::to_chars(end, end + 10, affinity_of(query)).ptr;
    *end++ = '\r';
    *end++ = '\n';
    end = std::copy(kLengthName.begin(), kLengthName.end(), end);
  }
  end = std::to_chars(end, end + 20, bytes).ptr;
  constexpr std::string_view kEndOfHead = "\r\n\r\n";
  end = std::copy(kEndOfHead.begin(), kEndOfHead.end(), end);
  const auto length_bytes = static_cast<std::size_t>(end - length_text_.data());
  const std::string& head = shared_.heads[query.frontend].text;
  std::size_t head_bytes = head.size();
  if (query.conversation != nullptr && !query.conversation->routing_lines.empty()) {
    const std::size_t at = shared_.heads[query.frontend].routing_at;
    add_part(std::string_view(head).substr(0, at));
    add_part(query.conversation->routing_lines);
    add_part(std::string_view(head).substr(at));
    head_bytes += query.conversation->routing_lines.size();
  } else {
    add_part(head);
  }
  add_part({length_text_.data(), length_bytes});
  if (!salt.empty()) {
    const auto splice = static_cast<std::size_t>(row.splice);
    add_part(row.body.substr(0, splice));
    add_part(salt);
    add_part(row.body.substr(splice));
  } else {
    add_part(row.body);
  }
  record_->bytes_up = static_cast<std::uint32_t>(head_bytes + length_bytes + bytes);
}

std::span<iovec> DirectCall::unsent() {
  return std::span<iovec>(parts_).subspan(part_, static_cast<std::size_t>(part_count_ - part_));
}

std::string_view DirectCall::in_one_piece(std::span<char> room) const {
  if (sent_bytes_ > 0 || record_->bytes_up > room.size()) {
    return {};
  }
  char* end = room.data();
  for (std::uint8_t i = 0; i < part_count_; ++i) {
    std::memcpy(end, parts_[i].iov_base, parts_[i].iov_len);
    end += parts_[i].iov_len;
  }
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

void DirectCall::mark_sent(std::size_t bytes) {
  sent_bytes_ += bytes;
  while (part_ < part_count_ && bytes >= parts_[part_].iov_len) {
    bytes -= parts_[part_].iov_len;
    ++part_;
  }
  if (bytes > 0) {
    parts_[part_].iov_base = static_cast<char*>(parts_[part_].iov_base) + bytes;
    parts_[part_].iov_len -= bytes;
  }
}

void DirectCall::note_sent_at(base::Instant at) {
  record_->sent_at = at;
  last_stamp_ = at;  // an answer that lay there before the question is stamped with the question
}

// ---- the reply -------------------------------------------------------------------------------

void DirectCall::fetch_further_lines() const {
  if (reply_.is_stream()) {
    reply_.fetch_lines();
  } else {
    base::fetch_lines(record_.get(), sizeof *record_);
  }
}

DirectCall::Reading DirectCall::read(std::string_view bytes, base::Instant at, bool& surplus) {
  last_stamp_ = at;
  if (!record_->first_byte_at.is_set()) {
    record_->first_byte_at = at;
  }
  Reading reading = Reading::kMore;
  std::string_view body;
  for (bool going = true; going; going = going && !(bytes.empty() && reader_.wants_bytes())) {
    switch (reader_.next(bytes, body)) {
      case HttpReader::Found::kMore:
        going = false;
        break;
      case HttpReader::Found::kHead:
        reply_.on_header(reader_.status(), reader_.content_type());
        break;
      case HttpReader::Found::kBody:
        body_bytes_down_ += body.size();
        reply_.on_body(body, at);
        if (reply_.broken()) {
          reading = Reading::kUnusable;
          going = false;
        }
        break;
      case HttpReader::Found::kDone:
        surplus = !bytes.empty();
        reading = Reading::kWhole;
        going = false;
        break;
      case HttpReader::Found::kBad:
        reading = Reading::kBad;
        going = false;
        break;
    }
  }
  const std::uint32_t events = reply_.content_events();
  if (events != events_told_) {
    add_relaxed(shared_.gauges->output_tokens, events - events_told_);
    events_told_ = events;
  }
  return reading;
}

std::unique_ptr<wire::Record>& DirectCall::finish(EndKind end, base::Instant at,
                                                  std::string_view detail) {
  record_->bytes_down = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(body_bytes_down_ + reader_.header_bytes(), UINT32_MAX));
  reply_.on_end(end, at, *record_, detail);
  if (!record_->error_message.empty()) {
    hide_credentials(*shared_.config->target, {}, record_->error_message);
  }
  record_->done_at = at;
  if (record_->completion_tokens > 0) {
    // Usage is the better count; the gauge only ever grows.
    const auto told = static_cast<std::int64_t>(reply_.content_events());
    add_relaxed(shared_.gauges->output_tokens, static_cast<std::uint64_t>(std::max<std::int64_t>(
                                                   record_->completion_tokens - told, 0)));
  }
  return record_;
}

}  // namespace tutti::target
