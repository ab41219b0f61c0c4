#include "coordinator/console/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/log.h"

namespace tutti::console {
namespace {

constexpr base::Duration kRedrawEvery = base::Duration::millis(250);
constexpr base::Duration kPlainEvery = base::Duration::seconds(5);

void print_log_line(void* context, const std::string& line) {
  static_cast<Terminal*>(context)->print_above(line);
}

}  // namespace

Terminal::Terminal(std::FILE* out) : out_(out), is_terminal_(isatty(fileno(out)) == 1) {
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string(term) == "dumb") {
    is_terminal_ = false;
  }
  if (is_terminal_) {
    base::redirect_log(&print_log_line, this);
  }
}

Terminal::~Terminal() { base::redirect_log(nullptr, nullptr); }

std::size_t Terminal::columns() const {
  winsize size{};
  if (ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 20) {
    return size.ws_col - 1U;
  }
  return 79;
}

void Terminal::erase_block() {
  if (lines_drawn_ > 0) {
    std::fputs(fmt::format("\x1b[{}A\x1b[J", lines_drawn_).c_str(), out_);
    lines_drawn_ = 0;
  }
}

void Terminal::print_above(const std::string& line) {
  erase_block();
  std::fputs(line.c_str(), out_);
  std::fputs(block_.c_str(), out_);
  lines_drawn_ = static_cast<std::size_t>(std::count(block_.begin(), block_.end(), '\n'));
  std::fflush(out_);
}

void Terminal::draw(const LiveView& view, base::Instant now) {
  const base::Duration every = is_terminal_ ? kRedrawEvery : kPlainEvery;
  if ((drawn_at_.is_set() && now - drawn_at_ < every) || (!is_terminal_ && !view.heard())) {
    return;  // a line cannot be drawn over: none of zeros only because agents have not spoken
  }
  drawn_at_ = now;
  if (!is_terminal_) {
    std::fputs((view.plain_line(now) + "\n").c_str(), out_);
    std::fflush(out_);
    return;
  }
  erase_block();
  block_ = view.block(now, columns());
  std::fputs(block_.c_str(), out_);
  lines_drawn_ = static_cast<std::size_t>(std::count(block_.begin(), block_.end(), '\n'));
  std::fflush(out_);
}

void Terminal::finish(const LiveView& view, base::Instant now) {
  drawn_at_ = {};
  draw(view, now);
  block_.clear();
  lines_drawn_ = 0;
  base::redirect_log(nullptr, nullptr);
}

}  // namespace tutti::console
