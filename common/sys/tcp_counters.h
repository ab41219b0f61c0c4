#pragma once

// TcpCounters: what the kernel counts of TCP in this process's network namespace: everything in it,
// not only ours. Read from /proc/net; a number that is not there reads as 0. Cheap enough for once
// a second. Any thread.

#include <cstdint>
#include <string_view>

namespace tutti::sys {

struct TcpCounters {
  std::uint64_t segments_sent = 0;  // ever, without retransmitted ones
  std::uint64_t retransmits = 0;    // ever, segments
  std::uint32_t sockets_in_use = 0;
  std::uint32_t sockets_time_wait = 0;  // closed, but their port is not free yet
};

TcpCounters tcp_counters();

// The value of `name` in /proc/net/snmp's form: a line "Tcp: names…", then a line "Tcp: values…".
std::uint64_t snmp_value(std::string_view text, std::string_view protocol, std::string_view name);
// The value of `name` in /proc/net/sockstat's form: "TCP: inuse 27 orphan 0 tw 4 …".
std::uint64_t sockstat_value(std::string_view text, std::string_view protocol,
                             std::string_view name);

}  // namespace tutti::sys
