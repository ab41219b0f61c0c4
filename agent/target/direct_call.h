#pragma once

// DirectCall: one query on a connection, from begin() to the Record in finish(): what is left of
// the request as a list of pieces for one sendmsg, the reply's framing and its reading. Pooled: all
// buffers are kept from query to query. Knows no socket and reads no clock. Owned by one worker
// thread.

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/target/chain.h"
#include "agent/target/http_reader.h"
#include "agent/target/reply.h"
#include "agent/target/request_head.h"
#include "agent/target/transport.h"
#include "common/base/fetch.h"

namespace tutti::target {

struct Connection;

// Same for every call of a transport; outlives them.
struct DirectShared {
  const TransportConfig* config = nullptr;
  LiveGauges* gauges = nullptr;
  KnownHead* known_head = nullptr;  // what replies of this worker learn from one another
  KnownForm* known_form = nullptr;
  std::vector<RequestHead> heads;  // per frontend
};

class DirectCall {
 public:
  enum class Reading : std::uint8_t {
    kMore,
    kWhole,     // the reply ended where HTTP says so
    kUnusable,  // the reply broke a limit of ours: its judgement is made
    kBad        // not HTTP: problem()
  };

  explicit DirectCall(const DirectShared& shared);

  void begin(const Query& query, base::Instant now);

  // ---- the request
  std::span<iovec> unsent();
  void mark_sent(std::size_t bytes);  // off the front of unsent()
  bool nothing_sent() const { return sent_bytes_ == 0; }
  // The request gathered into `room`, which the kernel takes up faster than parts (measured on a
  // quiet machine: 0.5 µs of 9; on a busy one it is the other way round); empty when it does not
  // fit or its sending has begun.
  std::string_view in_one_piece(std::span<char> room) const;
  bool whole_sent() const { return part_ == part_count_; }
  void note_sent_at(base::Instant at);

  // ---- the reply
  // For read(), before the bytes are asked for: this object. And after: what it points to.
  void fetch_own_lines() const { base::fetch_lines(this, sizeof *this); }
  void fetch_further_lines() const;
  // Bytes that arrived at `at`. `surplus`: bytes beyond a whole reply.
  Reading read(std::string_view bytes, base::Instant at, bool& surplus);
  bool keeps_alive() const { return reader_.keeps_alive(); }
  HttpReader::Ending end_of_input() { return reader_.finish(); }
  const std::string& problem() const { return reader_.problem(); }
  // The latest stamp of this call, which the next one never goes behind.
  base::Instant last_stamp() const { return last_stamp_; }

  std::unique_ptr<wire::Record>& finish(EndKind end, base::Instant at, std::string_view detail);

  wire::Record& record() { return *record_; }
  std::uint16_t frontend() const { return record_->frontend; }
  base::Instant started_at() const { return started_at_; }
  const TimeAllowed& allowed() const { return allowed_; }

  // ---- the transport's own notes
  Connection* connection = nullptr;  // null while none was found, or once the call has ended
  DirectCall* older = nullptr;       // by start
  DirectCall* newer = nullptr;
  std::uint32_t slot = 0;
  int send_error = 0;           // sending stopped; the reply may still come
  bool waits_for_name = false;  // no address is known yet
  ConnectWait<DirectCall> wait{this};
  bool ended = false;  // end_kind and end_detail wait to be delivered
  EndKind end_kind = EndKind::kInternal;
  std::string end_detail;

 private:
  void set_body(const Query& query);
  void add_part(std::string_view bytes);

  const DirectShared& shared_;
  Reply reply_;
  HttpReader reader_;
  std::unique_ptr<wire::Record> record_ = std::make_unique<wire::Record>();
  base::Instant started_at_{};
  TimeAllowed allowed_{};
  base::Instant last_stamp_{};
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t body_bytes_down_ = 0;
  std::uint32_t events_told_ = 0;
  std::uint8_t part_ = 0;  // first one with something left
  std::uint8_t part_count_ = 0;
  std::array<iovec, 7> parts_{};        // head, routing, rest of it, length, body, salt, rest of it
  std::array<char, 64> length_text_{};  // digits and the blank line; the affinity's digits before
  std::array<char, 19> salt_text_{};    // what a salted prompt begins with
};

}  // namespace tutti::target
