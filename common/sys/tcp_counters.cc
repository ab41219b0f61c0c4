#include "common/sys/tcp_counters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>

namespace tutti::sys {
namespace {

// The next word of `line`, taken off it; empty at its end.
std::string_view next_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::uint64_t number(std::string_view word) {
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

std::string read_whole(const char* path) {
  std::string text;
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) {
    return text;
  }
  std::array<char, 4096> piece{};
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), file)) {
    text.append(piece.data(), n);
  }
  std::fclose(file);
  return text;
}

}  // namespace

std::uint64_t snmp_value(std::string_view text, std::string_view protocol, std::string_view name) {
  while (!text.empty()) {
    std::string_view names = next_line(text);
    if (next_word(names) != protocol) {
      continue;
    }
    std::string_view values = next_line(text);
    if (next_word(values) != protocol) {
      return 0;
    }
    while (true) {
      const std::string_view key = next_word(names);
      const std::string_view value = next_word(values);
      if (key.empty() || value.empty()) {
        return 0;
      }
      if (key == name) {
        return number(value);
      }
    }
  }
  return 0;
}

std::uint64_t sockstat_value(std::string_view text, std::string_view protocol,
                             std::string_view name) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (next_word(line) != protocol) {
      continue;
    }
    for (std::string_view key = next_word(line); !key.empty(); key = next_word(line)) {
      const std::string_view value = next_word(line);
      if (key == name) {
        return number(value);
      }
    }
    return 0;
  }
  return 0;
}

TcpCounters tcp_counters() {
  const std::string snmp = read_whole("/proc/self/net/snmp");
  const std::string four = read_whole("/proc/self/net/sockstat");
  const std::string six = read_whole("/proc/self/net/sockstat6");
  TcpCounters out;
  out.segments_sent = snmp_value(snmp, "Tcp:", "OutSegs");
  out.retransmits = snmp_value(snmp, "Tcp:", "RetransSegs");
  out.sockets_in_use = static_cast<std::uint32_t>(sockstat_value(four, "TCP:", "inuse") +
                                                  sockstat_value(six, "TCP6:", "inuse"));
  out.sockets_time_wait = static_cast<std::uint32_t>(sockstat_value(four, "TCP:", "tw"));
  return out;
}

}  // namespace tutti::sys
