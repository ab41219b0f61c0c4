#pragma once

// begin_record(): what a pooled record says before its exchange goes out, the same on both ways
// onto the wire. What the reply decides is written at the end (Reply::on_end). Any thread.

#include <cstdint>

#include "agent/target/transport.h"
#include "common/wire/record.h"

namespace tutti::target {

inline void begin_record(wire::Record& record, const Query& query, std::uint16_t worker) {
  record.seq = query.command.seq;
  record.sample = query.command.sample;
  record.phase = query.phase;
  record.worker = worker;
  record.frontend = query.frontend;
  record.due_at = query.due_at;
  record.issued_at = query.issued_at;
  record.sent_at = {};
  record.first_byte_at = {};
  record.done_at = {};
  record.connection_reused = false;
  record.resent = false;
  record.dns_us = 0;
  record.connect_us = 0;
  record.tls_us = 0;
  record.bytes_down = 0;
}

}  // namespace tutti::target
