#pragma once

// The least that must be read of an HTTP/1.1 answer to know where it ends and how many server-sent
// events it held. The floor that the agent's engine is measured against: no copies, no allocation
// once the head has come in one piece. One per connection; one thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::bench {

class ReplyScanner {
 public:
  enum class State : std::uint8_t { kHead, kLength, kSize, kData, kDataEnd, kTrailer, kDone, kBad };

  // Consumes bytes of one answer; stops behind its end.
  std::size_t feed(std::string_view bytes);
  void reset();

  State state() const { return state_; }
  bool is_done() const { return state_ == State::kDone; }
  bool is_bad() const { return state_ == State::kBad; }
  bool is_untouched() const { return state_ == State::kHead && head_.empty(); }
  bool keeps_connection() const { return keeps_; }
  int status() const { return status_; }
  // Lines that begin with `data: {`, since the last take_events().
  std::uint64_t take_events();
  // When set, the values of "tutti_sent_ns" are appended here.
  void collect_stamps(std::vector<std::int64_t>* stamps) { stamps_ = stamps; }

 private:
  std::size_t feed_head(std::string_view bytes);
  void read_head(std::string_view head);
  void read_header(std::string_view line);
  std::size_t feed_chunk(std::string_view bytes);
  void scan(std::string_view data);

  State state_ = State::kHead;
  bool keeps_ = true;
  bool size_seen_ = false;
  bool line_empty_ = true;
  int status_ = 0;
  int matched_ = 0;         // bytes of the event prefix matched in this line; -1: another line
  std::uint64_t left_ = 0;  // of the body, or of the chunk
  std::uint64_t events_ = 0;
  std::string head_;
  std::vector<std::int64_t>* stamps_ = nullptr;
};

}  // namespace tutti::bench
