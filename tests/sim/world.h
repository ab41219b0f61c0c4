#pragma once

// World: the simulated universe of one seed. True time in nanoseconds, one queue of happenings in a
// strict order, one generator of chance, and a trace whose hash tells two runs apart. Nothing in it
// reads a clock of this machine. Single thread.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/time.h"

namespace tutti::sim {

using base::Duration;
using base::Instant;

// A host's monotonic clock: starts anywhere, runs a little fast or slow.
class SimClock {
 public:
  SimClock(std::int64_t skew_ns, double drift) : skew_ns_(skew_ns), drift_(drift) {}

  Instant at(Instant truth) const {
    const double extra = drift_ * static_cast<double>(truth.ns);
    const auto whole = static_cast<std::int64_t>(extra);  // floor(), without a call
    return {truth.ns + skew_ns_ + whole - (static_cast<double>(whole) > extra ? 1 : 0)};
  }
  // The first true instant at which this clock shows at least `local`.
  Instant truth(Instant local) const {
    if (local == base::kFarFuture) {
      return base::kFarFuture;
    }
    const double guess = static_cast<double>(local.ns - skew_ns_) / (1.0 + drift_);
    Instant truth{static_cast<std::int64_t>(guess) - 2};
    while (at(truth) < local) {
      ++truth.ns;
    }
    return truth;
  }

 private:
  std::int64_t skew_ns_;
  double drift_;
};

// The last happenings, for a failing seed, and a hash of all of them.
class Trace {
 public:
  static constexpr std::size_t kKept = 400;

  void add(Instant at, const char* what, std::uint64_t who, std::uint64_t a, std::uint64_t b) {
    mix(static_cast<std::uint64_t>(at.ns));
    for (const char* c = what; *c != 0; ++c) {
      mix(static_cast<std::uint64_t>(*c));
    }
    mix(who);
    mix(a);
    mix(b);
    if (lines_.size() < kKept) {
      lines_.push_back({at, what, who, a, b});
    } else {
      lines_[count_ % kKept] = {at, what, who, a, b};
    }
    ++count_;
  }
  std::uint64_t hash() const { return hash_; }
  std::string tail(std::size_t most = kKept) const {
    std::string text;
    const std::size_t n = std::min({count_, kKept, most});
    for (std::size_t i = count_ - n; i < count_; ++i) {
      const Line& line = lines_[i % kKept];
      text +=
          fmt::format("{:14.6f} s  {:<22} node {:<2} {} {}\n",
                      static_cast<double>(line.at.ns) / 1e9, line.what, line.who, line.a, line.b);
    }
    return text;
  }

 private:
  struct Line {
    Instant at{};
    const char* what = "";
    std::uint64_t who = 0;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
  };

  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3ULL; }

  std::uint64_t hash_ = 0xCBF29CE484222325ULL;
  std::size_t count_ = 0;
  std::vector<Line> lines_;  // a ring, once it is full
};

// One happening to come: anything that can be called, kept in place. A world has thousands, so that
// a piece of the heap for each, and a move at every step of a sort, would be most of its cost.
class Happening {
 public:
  Happening() = default;
  Happening(const Happening&) = delete;
  Happening& operator=(const Happening&) = delete;
  ~Happening() { drop(); }

  template <class F>
  void set(F&& what) {
    using Kept = std::decay_t<F>;
    static_assert(sizeof(Kept) <= sizeof(room_) && alignof(Kept) <= alignof(std::max_align_t));
    drop();
    ::new (static_cast<void*>(room_)) Kept(std::forward<F>(what));
    run_ = [](void* room) { (*static_cast<Kept*>(room))(); };
    drop_ = [](void* room) { static_cast<Kept*>(room)->~Kept(); };
  }
  void run() {
    run_(room_);
    drop();
  }

 private:
  void drop() {
    if (drop_ != nullptr) {
      std::exchange(drop_, nullptr)(room_);
    }
  }

  alignas(std::max_align_t) std::byte room_[64];
  void (*run_)(void*) = nullptr;
  void (*drop_)(void*) = nullptr;
};

class World {
 public:
  explicit World(std::uint64_t seed) : chance_(seed) {}

  Instant now() const { return now_; }
  Trace& trace() { return trace_; }
  void note(const char* what, std::uint64_t who, std::uint64_t a = 0, std::uint64_t b = 0) {
    trace_.add(now_, what, who, a, b);
  }

  template <class F>
  void at(Instant when, F&& happening) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(happenings_.size()));
      happenings_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    happenings_[place].set(std::forward<F>(happening));
    queue_.push_back({std::max(when, now_), order_++, place});
    std::push_heap(queue_.begin(), queue_.end());
  }
  template <class F>
  void after(Duration delay, F&& happening) {
    at(now_ + delay, std::forward<F>(happening));
  }
  // False when nothing is left to happen, or only after `end`.
  bool advance(Instant end) {
    if (queue_.empty() || queue_.front().at > end) {
      return false;
    }
    std::pop_heap(queue_.begin(), queue_.end());
    const Turn next = queue_.back();
    queue_.pop_back();
    now_ = next.at;
    ++happened_;
    happenings_[next.place].run();  // what it asks for goes to other places
    free_.push_back(next.place);
    return true;
  }
  std::uint64_t happened() const { return happened_; }

  // Chance. Every draw comes from the one seed.
  double uniform() { return chance_.next_double(); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool maybe(double probability) { return uniform() < probability; }
  std::uint64_t below(std::uint64_t n) { return chance_.below(n); }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  // Many small, some large.
  double log_uniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  std::uint64_t bits() { return chance_.next_bits(64); }

 private:
  struct Turn {
    Instant at{};
    std::uint64_t order = 0;
    std::uint32_t place = 0;  // in happenings_
    bool operator<(const Turn& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  base::Mt19937 chance_;
  Trace trace_;
  Instant now_{1};
  std::uint64_t order_ = 0;
  std::uint64_t happened_ = 0;
  std::vector<Turn> queue_;           // a heap
  std::deque<Happening> happenings_;  // none ever moves
  std::vector<std::uint32_t> free_;   // places in it
};

}  // namespace tutti::sim
