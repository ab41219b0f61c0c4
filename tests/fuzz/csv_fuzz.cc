// Any bytes, cut anywhere, give the same records and the same error; and what was read, written
// again with every field quoted, reads back the same.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/csv.h"

namespace {

struct Reading {
  std::vector<std::vector<std::string>> records;
  std::vector<std::size_t> lines;
  std::size_t error_line = 0;
};

bool same(const Reading& a, const Reading& b) {
  return a.records == b.records && a.lines == b.lines && a.error_line == b.error_line;
}

Reading read(std::string_view bytes, std::size_t piece) {
  tutti::text::CsvReader reader({1000, 50});
  Reading out;
  const auto sink = [&out](std::vector<std::string>& fields, std::size_t line) {
    out.records.push_back(fields);
    out.lines.push_back(line);
    return true;
  };
  bool going = true;
  for (std::size_t at = 0; at < bytes.size() && going; at += piece) {
    going = reader.feed(bytes.substr(at, piece), sink);
  }
  if (going) {
    reader.finish(sink);
  }
  out.error_line = reader.error().line;
  return out;
}

std::string write(const Reading& reading) {
  std::string out;
  for (const auto& record : reading.records) {
    for (std::size_t i = 0; i < record.size(); ++i) {
      out += i == 0 ? "\"" : ",\"";
      for (const char c : record[i]) {
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
      }
      out += '"';
    }
    out += '\n';
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::vector<char> body(data + 1, data + size);
  const std::string_view bytes(body.data(), body.size());
  const Reading whole = read(bytes, bytes.size() + 1);
  if (!same(read(bytes, 1 + data[0] % 16), whole) || !same(read(bytes, 1), whole)) {
    std::abort();
  }
  const Reading again = read(write(whole), 7);
  if (again.records != whole.records || again.error_line != 0) {
    std::abort();
  }
  return 0;
}
