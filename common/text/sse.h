#pragma once

// SseParser: server-sent events from a byte stream cut anywhere. Line ends may be LF, CRLF, CR or a
// mix; comments, a BOM at the very start, several data lines (joined by LF) and fields without a
// colon follow the WHATWG event-stream rules. Two wider choices: an event with a type but no data
// is delivered (servers send `event: error` that way, with the text in a comment), and finish()
// delivers a last event that lacks its blank line. An event that lies whole in the fed bytes is not
// copied; buffers keep their capacity, so the steady state does not allocate. Owned by one thread.

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace tutti::text {

// Views live only during the sink's call.
struct SseEvent {
  std::string_view type;     // value of the last `event` field; empty: none
  std::string_view data;     // `data` lines joined by LF
  std::string_view comment;  // first comment line since the last event, cut at kCommentMax
  bool has_data = false;     // at least one `data` line came
};

inline constexpr std::size_t kSseEventBytesMax = std::size_t{16} << 20;

class SseParser {
 public:
  explicit SseParser(std::size_t event_bytes_max = kSseEventBytesMax) : max_(event_bytes_max) {}

  // Calls sink(const SseEvent&) for every event completed by these bytes. False: an event outgrew
  // the limit; the parser then ignores everything until reset().
  template <class Sink>
  bool feed(std::string_view bytes, Sink&& sink) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    const char* next_lf = nullptr;  // first LF and CR at or after `at`, looked up once per run
    const char* next_cr = nullptr;
    while (at < end && !too_large_) {
      if (after_cr_) {
        after_cr_ = false;
        if (*at == '\n') {
          ++at;
          continue;
        }
      }
      next_lf = find(next_lf, at, end, '\n');
      next_cr = find(next_cr, at, end, '\r');
      const char* const stop = next_lf < next_cr ? next_lf : next_cr;
      const std::string_view piece(at, static_cast<std::size_t>(stop - at));
      if (stop == end) {
        keep_partial(piece);
        break;
      }
      after_cr_ = *stop == '\r';
      at = stop + 1;
      take_line(piece, sink);
    }
    own_data();
    return !too_large_;
  }

  // The stream is over: a last line and a last event without their ends are delivered now.
  template <class Sink>
  bool finish(Sink&& sink) {
    if (!line_.empty() && !too_large_) {
      take_line({}, sink);
    }
    if (!too_large_) {
      deliver(sink);
    }
    return !too_large_;
  }

  // Ready for another stream. Keeps buffers, except outsized ones.
  void reset();

  bool too_large() const { return too_large_; }
  // Nothing of what was fed waits for more: the next byte begins an event.
  bool between_events() const {
    return line_.empty() && !has_data_ && type_.empty() && comment_.empty() && !after_cr_ &&
           !at_start_ && !too_large_;
  }

 private:
  static constexpr std::size_t kCommentMax = 1024;
  static constexpr std::size_t kKeepCapacityMax = std::size_t{256} << 10;

  // A line is at most an event's data and its field name, whether it comes whole or in pieces.
  std::size_t line_max() const { return max_ + 64; }

  static const char* find(const char* known, const char* at, const char* end, char c) {
    if (known >= at && known != nullptr) {
      return known;
    }
    if (*at == c) {
      return at;  // the blank line that ends an event
    }
    const void* hit = std::memchr(at, c, static_cast<std::size_t>(end - at));
    return hit == nullptr ? end : static_cast<const char*>(hit);
  }

  template <class Sink>
  void take_line(std::string_view piece, Sink& sink) {
    const bool whole = line_.empty();
    if (!whole) {
      keep_partial(piece);
    } else if (piece.size() > line_max()) {
      too_large_ = true;
    }
    if (too_large_) {
      return;
    }
    std::string_view line = whole ? piece : std::string_view(line_);
    if (at_start_) {
      at_start_ = false;
      if (line.substr(0, 3) == "\xEF\xBB\xBF") {
        line.remove_prefix(3);
      }
    }
    if (line.empty()) {
      deliver(sink);
    } else {
      take_field(line, whole);
    }
    line_.clear();
  }

  template <class Sink>
  void deliver(Sink& sink) {
    if (has_data_ || !type_.empty()) {
      const std::string_view owned = data_;
      sink(SseEvent{type_,
                    !has_data_    ? std::string_view()
                    : data_owned_ ? owned
                                  : data_view_,
                    comment_, has_data_});
    }
    clear_event();
  }

  void take_field(std::string_view line, bool in_fed_bytes);
  void add_data(std::string_view value, bool in_fed_bytes);
  void keep_partial(std::string_view piece);
  void own_data() {
    if (has_data_ && !data_owned_) {
      data_.assign(data_view_);
      data_owned_ = true;
    }
  }
  void clear_event() {
    has_data_ = false;
    data_owned_ = false;
    type_.clear();
    comment_.clear();
  }

  std::size_t max_;
  std::string line_;  // a line whose end has not come yet
  std::string data_;  // the event's data, once it cannot stay a view
  std::string_view data_view_;
  std::string type_;
  std::string comment_;
  bool has_data_ = false;
  bool data_owned_ = false;
  bool after_cr_ = false;
  bool at_start_ = true;
  bool too_large_ = false;
};

}  // namespace tutti::text
