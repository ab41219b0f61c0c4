#pragma once

// The rim of the live view: redraws one block in place on a terminal, prints a plain line every few
// seconds elsewhere. While a block stands, log lines are printed above it. Main thread only.

#include <cstdio>
#include <string>

#include "common/base/time.h"
#include "coordinator/console/live_view.h"

namespace tutti::console {

class Terminal {
 public:
  // `out` is stdout in main. A block is used only when it is a terminal.
  explicit Terminal(std::FILE* out);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void draw(const LiveView& view, base::Instant now);
  // A last plain line, then the block is left as it is and the log gets stdout back.
  void finish(const LiveView& view, base::Instant now);
  void print_above(const std::string& line);

 private:
  std::size_t columns() const;
  void erase_block();

  std::FILE* out_;
  bool is_terminal_;
  std::size_t lines_drawn_ = 0;
  std::string block_;
  base::Instant drawn_at_{};
};

}  // namespace tutti::console
