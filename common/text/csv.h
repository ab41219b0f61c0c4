#pragma once

// CsvReader: RFC 4180 records from a byte stream cut anywhere: quoted fields with doubled quotes,
// embedded line ends, CRLF, LF or CR, a BOM at the start; blank lines are skipped. A quote inside
// an unquoted field is an ordinary character (pandas reads it so); text after a closing quote
// and an unclosed quote are errors with the line they began on. Owned by one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::text {

struct CsvError {
  std::size_t line = 0;  // counted from 1; 0: no error
  std::string reason;
};

struct CsvLimits {
  std::size_t field_bytes_max = std::size_t{64} << 20;
  std::size_t fields_max = 4096;
};

class CsvReader {
 public:
  // `fields` may be moved from. `line` is where the record began. False ends the reading.
  using Sink = std::function<bool(std::vector<std::string>& fields, std::size_t line)>;

  explicit CsvReader(CsvLimits limits = {}) : limits_(limits) {}

  // False: an error (see error()) or the sink said stop; nothing more is read.
  bool feed(std::string_view bytes, const Sink& sink);
  bool finish(const Sink& sink);

  const CsvError& error() const { return error_; }
  std::size_t line() const { return line_; }  // of the next byte
  bool stopped_by_sink() const { return stopped_ && error_.line == 0; }

 private:
  enum class State : std::uint8_t { kFieldStart, kPlain, kQuoted, kQuoteInQuoted };

  bool take(char c, const Sink& sink);
  bool end_field();
  bool end_record(const Sink& sink);
  bool put(char c);
  bool fail(std::size_t line, std::string reason);

  CsvLimits limits_;
  CsvError error_;
  State state_ = State::kFieldStart;
  std::vector<std::string> fields_;
  std::string field_;
  std::size_t line_ = 1;         // of the next byte
  std::size_t record_line_ = 1;  // where the current record began
  std::size_t quote_line_ = 1;   // where the current quoted field began
  std::size_t start_bytes_ = 0;  // BOM bytes matched so far; kNoBom when past the start
  bool after_cr_ = false;
  bool any_ = false;  // something of the current record came
  bool stopped_ = false;
};

}  // namespace tutti::text
