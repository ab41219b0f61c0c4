#pragma once

// EventLines: one line of events.jsonl at a time, in the reference's form: compact, raw UTF-8, keys
// in their order, data as tagged arrays. Knows forms only; which line comes when is write_events'
// matter. One owner; appends to a string that the owner empties.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/time.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/ledger/texts.h"
#include "coordinator/report/run_facts.h"

namespace tutti::report {

class EventLines {
 public:
  explicit EventLines(std::string& out) : out_(out) {}

  void session(std::string_view type, base::Instant at);
  // Of the queries that the following lines are about, until it is called again.
  void set_turn(const TurnName& turn);
  void issued(std::string_view query, base::Instant at, const Prompt& prompt);
  void chunk(std::string_view query, base::Instant at, bool first);
  void error(std::string_view query, base::Instant at, const ledger::Fact& fact,
             const ledger::Texts& texts);
  void complete(std::string_view query, base::Instant at, const ledger::Fact& fact,
                const ledger::Texts& texts, std::uint32_t worker);

 private:
  // Up to and including `"data":`.
  void begin(std::string_view type, base::Instant at, std::string_view query);
  void end() { out_ += "}\n"; }

  std::string& out_;
  std::string turn_;  // the members that name it, rendered; empty: none
};

// The files' error text: "HTTP 503: …" for a status, else the message.
std::string error_text(const ledger::Fact& fact, const ledger::Texts& texts);

}  // namespace tutti::report
