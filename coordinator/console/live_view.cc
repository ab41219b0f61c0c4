#include "coordinator/console/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tutti::console {
namespace {

// Rates are taken over the last few seconds: long enough to be calm, short enough to be live.
constexpr base::Duration kRateWindow = base::Duration::seconds(5);
// … of points so far apart at least: a thousand agents say something 3,000 times a second.
constexpr base::Duration kSampleEvery = base::Duration::millis(50);

// An agent speaks when it is armed too, of a phase that has not begun.
constexpr base::Duration kPatience = base::Duration::seconds(1);

std::string short_number(double n) {
  if (n >= 1e6) {
    return fmt::format("{:.2f}M", n / 1e6);
  }
  if (n >= 1e4) {
    return fmt::format("{:.1f}k", n / 1e3);
  }
  return n >= 100 ? fmt::format("{:.0f}", n) : fmt::format("{:.1f}", n);
}

std::string milliseconds(const stats::LiveHistogram& histogram, double percent) {
  const auto value = histogram.percentile(percent);
  return value ? fmt::format("{:.1f}", *value / 1e6) : "-";
}

std::string clock_text(base::Duration d) {
  const std::int64_t s = d.ns / 1'000'000'000;
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{:02}:{:02}", s / 60, s % 60);
}

std::string bar(double share, std::size_t width) {
  const double clipped = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(clipped * static_cast<double>(width));
  return std::string(full, '#') + std::string(width - full, '.');
}

std::string cut(std::string line, std::size_t columns) {
  if (line.size() > columns) {
    line.resize(columns);
  }
  return line;
}

}  // namespace

LiveView::LiveView(std::vector<std::string> agents, std::vector<std::string> frontends,
                   verdict::ClientLimits limits)
    : frontends_(std::move(frontends)), limits_(limits) {
  for (auto& name : agents) {
    agents_.push_back(AgentRow{});
    agents_.back().name = std::move(name);
  }
  gauges_.resize(agents_.size());
  tokens_.resize(agents_.size());
}

void LiveView::begin_phase(std::string name, std::uint64_t total, std::vector<std::uint32_t> slots,
                           base::Instant now) {
  phase_ = std::move(name);
  total_ = total;
  target_ = 0;
  issued_ = 0;
  heard_ = false;
  done_ = 0;
  failed_ = 0;
  began_at_ = now;
  ended_ = false;
  broken_intervals_ = 0;
  last_broken_.clear();
  window_.clear();
  ttft_ = stats::LiveHistogram();
  tpot_ = stats::LiveHistogram();
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    auto& row = agents_[i];
    row.slots = i < slots.size() ? slots[i] : 0;
    row.in_flight = 0;
    row.started = row.done = row.failed = 0;
    row.broken.clear();
    target_ += row.slots;
    gauges_[i].clear();
    tokens_[i] = 0;
  }
}

void LiveView::note_progress(std::size_t agent, const wire::Progress& progress, base::Instant now) {
  if (agent >= agents_.size()) {
    return;
  }
  auto& row = agents_[agent];
  row.in_flight = progress.in_flight;
  row.started = progress.started;
  row.done = progress.done;
  row.failed = progress.failed;
  gauges_[agent] = progress.frontends;
  tokens_[agent] = progress.output_tokens;
  ttft_.add_cells(progress.ttft.cells);
  tpot_.add_cells(progress.tpot.cells);
  note_health(row, progress);
  heard_ = heard_ || progress.started > 0 || now - began_at_ >= kPatience;
  sample(now);
}

void LiveView::note_issued(std::uint64_t issued) { issued_ = issued; }

void LiveView::note_health(AgentRow& row, const wire::Progress& progress) {
  const wire::Health& health = progress.health;
  if (!health.to.is_set()) {
    return;  // no interval ended with this one
  }
  row.cpu = std::max(health.cpu_busiest_worker, health.cpu_session);
  row.lag_p99 = health.issue_lag_p99;
  row.broken.clear();
  if (progress.started == 0) {
    return;  // before the phase's first query
  }
  std::optional<base::Duration> ttft;
  if (const auto p50 = ttft_.percentile(50)) {
    ttft = base::Duration{static_cast<std::int64_t>(*p50)};
  }
  const auto findings = verdict::broken_in({progress.phase, progress.in_flight, health},
                                           verdict::issue_lag_limit(ttft, limits_), limits_);
  for (const auto& finding : findings) {
    row.broken += (row.broken.empty() ? "" : ", ") + finding.text;
  }
  if (!row.broken.empty()) {
    ++broken_intervals_;
    last_broken_ = fmt::format("agent {}: {}", row.name, row.broken);
  }
}

std::string LiveView::health_line() const {
  if (ended_) {
    return broken_intervals_ == 0 ? ""
                                  : fmt::format("client limits broken in {} intervals, last {}",
                                                broken_intervals_, last_broken_);
  }
  std::string text;
  std::size_t others = 0;
  for (const auto& row : agents_) {
    if (row.broken.empty() || row.lost) {
      continue;
    }
    others += text.empty() ? 0U : 1U;
    if (text.empty()) {
      text = fmt::format("client-bound now: agent {}: {}", row.name, row.broken);
    }
  }
  return others == 0 ? text : text + fmt::format("; and {} more agents", others);
}

void LiveView::end_phase() {
  ended_ = true;
  for (auto& row : agents_) {
    row.in_flight = 0;
  }
  for (auto& of_agent : gauges_) {
    for (auto& gauge : of_agent) {
      gauge.in_flight = 0;
    }
  }
}

void LiveView::note_lost(std::size_t agent) {
  if (agent < agents_.size()) {
    agents_[agent].lost = true;
    agents_[agent].in_flight = 0;
  }
}

void LiveView::note_stored(std::uint64_t done, std::uint64_t failed) {
  heard_ = true;
  done_ += done;
  failed_ += failed;
}

void LiveView::sample(base::Instant now) {
  if (!window_.empty() && now - window_.back().at < kSampleEvery) {
    return;
  }
  std::uint64_t tokens = 0;
  for (const auto count : tokens_) {
    tokens += count;
  }
  Point point{now, done_, tokens, {}};
  for (std::size_t f = 0; f < frontends_.size(); ++f) {
    point.frontends.push_back(frontend_sum(f));
  }
  window_.push_back(std::move(point));
  const auto old = std::find_if(window_.begin(), window_.end(),
                                [&](const Point& p) { return now - p.at <= kRateWindow; });
  window_.erase(window_.begin(), old);
}

wire::FrontendGauge LiveView::frontend_sum(std::size_t frontend) const {
  wire::FrontendGauge sum;
  for (const auto& of_agent : gauges_) {
    if (frontend < of_agent.size()) {
      sum.in_flight += of_agent[frontend].in_flight;
      sum.done += of_agent[frontend].done;
      sum.failed += of_agent[frontend].failed;
    }
  }
  return sum;
}

// Agents report one by one; their gauges count from the start of their process, so the first point
// of a phase knows nothing of those not heard yet. Only growth since it counts.
bool LiveView::fails(std::size_t frontend) const {
  if (window_.size() < 2 || frontend >= window_.back().frontends.size()) {
    return false;
  }
  const wire::FrontendGauge& before = window_.front().frontends[frontend];
  const wire::FrontendGauge& now = window_.back().frontends[frontend];
  return now.failed > before.failed && now.done - before.done == now.failed - before.failed;
}

LiveView::Rate LiveView::rate() const {
  if (window_.size() < 2) {
    return {};
  }
  const Point& first = window_.front();
  const Point& last = window_.back();
  const double span = (last.at - first.at).to_seconds();
  if (span <= 0) {
    return {};
  }
  const auto difference = [](std::uint64_t b, std::uint64_t a) {
    return b > a ? static_cast<double>(b - a) : 0.0;
  };
  return {difference(last.done, first.done) / span, difference(last.tokens, first.tokens) / span};
}

std::uint64_t LiveView::in_flight() const {
  std::uint64_t sum = 0;
  for (const auto& row : agents_) {
    sum += row.in_flight;
  }
  return sum;
}

// Each source may lag behind the others; none of them is ever ahead of the truth.
std::uint64_t LiveView::issued() const {
  std::uint64_t started = 0;
  for (const auto& row : agents_) {
    started += row.started;
  }
  return std::max({started, done_, issued_});
}

// TPOT is of usage alone. Replies that are no streams have neither TPOT nor TTFT, and what is
// counted of them is usage.
bool LiveView::usage_came() const {
  if (tpot_.percentile(50)) {
    return true;
  }
  std::uint64_t succeeded = 0;
  for (const auto& row : agents_) {
    succeeded += row.done - std::min(row.failed, row.done);
  }
  return succeeded > 0 && !ttft_.percentile(50);
}

std::string LiveView::time_left(base::Instant now) const {
  const double elapsed = (now - began_at_).to_seconds();
  if (total_ == 0 || done_ == 0 || elapsed <= 0) {
    return "?";
  }
  const double pace = static_cast<double>(done_) / elapsed;
  const double left = static_cast<double>(total_ > done_ ? total_ - done_ : 0) / pace;
  return clock_text(base::Duration::from_seconds(left));
}

std::string LiveView::plain_line(base::Instant now) const {
  const Rate r = rate();
  const std::string health = health_line();
  std::string failing;
  for (std::size_t f = 0; f < frontends_.size(); ++f) {
    failing += fails(f) ? " | FAILING: " + frontends_[f] : "";
  }
  return fmt::format(
      "[{}] {} issued {} done {}/{} failed {} in flight {}{} | {} req/s {} {} | TTFT p50 {} p99 {} "
      "ms | TPOT p50 {} p99 {} ms | left {}{}{}",
      clock_text(now - began_at_), phase_, issued(), done_,
      total_ == 0 ? "?" : std::to_string(total_), failed_, in_flight(),
      target_ == 0 ? "" : fmt::format("/{}", target_), short_number(r.queries_per_s),
      short_number(r.tokens_per_s), usage_came() ? "tok/s" : "events/s", milliseconds(ttft_, 50),
      milliseconds(ttft_, 99), milliseconds(tpot_, 50), milliseconds(tpot_, 99), time_left(now),
      failing, health.empty() ? "" : " | " + health);
}

std::string LiveView::block(base::Instant now, std::size_t columns) const {
  const Rate r = rate();
  std::vector<std::string> lines;
  const double share = total_ == 0 ? 0 : static_cast<double>(done_) / static_cast<double>(total_);
  lines.push_back(fmt::format("{:<12} [{}] {:5.1f} %  {} elapsed, {} left", phase_, bar(share, 30),
                              share * 100, clock_text(now - began_at_), time_left(now)));
  lines.push_back(fmt::format("  issued {}  done {}/{}  failed {}  in flight {}{}", issued(), done_,
                              total_ == 0 ? "?" : std::to_string(total_), failed_, in_flight(),
                              target_ == 0 ? "" : fmt::format(" of {}", target_)));
  lines.push_back(fmt::format("  {} req/s  {} {}   TTFT p50 {} p99 {} ms   TPOT p50 {} p99 {} ms",
                              short_number(r.queries_per_s), short_number(r.tokens_per_s),
                              usage_came() ? "tok/s" : "events/s", milliseconds(ttft_, 50),
                              milliseconds(ttft_, 99), milliseconds(tpot_, 50),
                              milliseconds(tpot_, 99)));
  constexpr std::size_t kRowsMax = 12;  // a block taller than the screen cannot be redrawn in place
  for (std::size_t i = 0; i < agents_.size() && i < kRowsMax; ++i) {
    const auto& row = agents_[i];
    lines.push_back(
        fmt::format("  agent {:<18} in flight {:>6}{} done {:>8} failed {:>5} cpu {:>3.0f} % lag "
                    "p99 {:.2f} ms{}",
                    row.name, row.in_flight, row.slots == 0 ? "" : fmt::format("/{:<6}", row.slots),
                    row.done, row.failed, row.cpu * 100, static_cast<double>(row.lag_p99.ns) / 1e6,
                    row.lost ? "  LOST" : ""));
  }
  if (agents_.size() > kRowsMax) {
    lines.push_back(fmt::format("  … and {} more agents", agents_.size() - kRowsMax));
  }
  for (std::size_t f = 0; f < frontends_.size() && f < kRowsMax; ++f) {
    const wire::FrontendGauge sum = frontend_sum(f);
    lines.push_back(fmt::format("  frontend {:<34} in flight {:>6} done {:>8} failed {:>5}{}",
                                frontends_[f], sum.in_flight, sum.done, sum.failed,
                                fails(f) ? "  FAILING" : ""));
  }
  if (std::string health = health_line(); !health.empty()) {
    lines.push_back("  " + health);
  }
  std::string text;
  for (auto& line : lines) {
    text += cut(std::move(line), columns) + "\n";
  }
  return text;
}

}  // namespace tutti::console
