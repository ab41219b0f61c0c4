#include "common/text/csv.h"

#include <utility>

namespace tutti::text {
namespace {

constexpr std::size_t kPastStart = 3;
constexpr unsigned char kBom[] = {0xEF, 0xBB, 0xBF};

}  // namespace

bool CsvReader::feed(std::string_view bytes, const Sink& sink) {
  if (stopped_) {
    return false;
  }
  for (const char c : bytes) {
    if (start_bytes_ < kPastStart) {
      if (static_cast<unsigned char>(c) == kBom[start_bytes_]) {
        ++start_bytes_;
        continue;
      }
      // Not a BOM after all: what was held back belongs to the first field.
      const std::size_t held = start_bytes_;
      start_bytes_ = kPastStart;
      for (std::size_t i = 0; i < held; ++i) {
        if (!take(static_cast<char>(kBom[i]), sink)) {
          return false;
        }
      }
    }
    if (!take(c, sink)) {
      return false;
    }
  }
  return true;
}

bool CsvReader::finish(const Sink& sink) {
  if (stopped_) {
    return false;
  }
  if (start_bytes_ < kPastStart) {
    const std::size_t held = start_bytes_;
    start_bytes_ = kPastStart;
    for (std::size_t i = 0; i < held; ++i) {
      if (!take(static_cast<char>(kBom[i]), sink)) {
        return false;
      }
    }
  }
  if (state_ == State::kQuoted) {
    return fail(quote_line_, "a quoted field that began here is never closed");
  }
  return !any_ || end_record(sink);
}

bool CsvReader::take(char c, const Sink& sink) {
  const bool after_cr = std::exchange(after_cr_, false);
  if (c == '\n' && after_cr) {
    return true;  // second half of a CRLF
  }
  if (state_ == State::kQuoted) {
    // Inside quotes line ends are data; they only move the line count.
    if (c == '"') {
      state_ = State::kQuoteInQuoted;
      return true;
    }
    line_ += c == '\n' ? 1 : 0;
    return put(c);
  }
  if (c == '\n' || c == '\r') {
    after_cr_ = c == '\r';
    const bool go_on = !any_ || end_record(sink);
    ++line_;
    record_line_ = line_;
    return go_on;
  }
  if (!any_) {
    any_ = true;
    record_line_ = line_;
  }
  if (c == ',') {
    return end_field();
  }
  if (state_ == State::kQuoteInQuoted) {
    if (c != '"') {
      return fail(line_, "text after a closing quote (a quote inside a field is written twice)");
    }
    state_ = State::kQuoted;
    return put(c);
  }
  if (state_ == State::kFieldStart && c == '"') {
    state_ = State::kQuoted;
    quote_line_ = line_;
    return true;
  }
  state_ = State::kPlain;
  return put(c);
}

bool CsvReader::put(char c) {
  if (field_.size() >= limits_.field_bytes_max) {
    return fail(line_,
                "a field is longer than " + std::to_string(limits_.field_bytes_max) + " bytes");
  }
  field_.push_back(c);
  return true;
}

bool CsvReader::end_field() {
  if (fields_.size() >= limits_.fields_max) {
    return fail(line_, "more than " + std::to_string(limits_.fields_max) + " fields in a record");
  }
  fields_.push_back(std::exchange(field_, {}));
  state_ = State::kFieldStart;
  return true;
}

bool CsvReader::end_record(const Sink& sink) {
  if (!end_field()) {
    return false;
  }
  any_ = false;
  const bool go_on = sink(fields_, record_line_);
  fields_.clear();
  stopped_ = !go_on;
  return go_on;
}

bool CsvReader::fail(std::size_t line, std::string reason) {
  error_ = {line, std::move(reason)};
  stopped_ = true;
  return false;
}

}  // namespace tutti::text
