#pragma once

// SimNetwork: carries bytes between nodes badly. Frames are lost, doubled, delayed, reordered; the
// path between two nodes can be cut and healed. Single thread.

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/world.h"

namespace tutti::sim {

struct NetworkOptions {
  Duration delay_min = Duration::micros(50);
  Duration delay_jitter = Duration::micros(100);
  double loss = 0;
  double duplication = 0;
  double reorder = 0;  // share of frames that take a detour
  Duration detour_max = Duration::millis(50);
  // The way back may be slower than the way out.
  Duration asymmetry{};
};

class SimNetwork {
 public:
  using Receiver = std::function<void(std::size_t from, std::string bytes)>;

  SimNetwork(World& world, NetworkOptions options) : world_(world), options_(options) {}

  std::size_t add(Receiver receiver) {
    receivers_.push_back(std::move(receiver));
    return receivers_.size() - 1;
  }
  void cut(std::size_t a, std::size_t b) { cuts_.insert(std::minmax(a, b)); }
  void heal(std::size_t a, std::size_t b) { cuts_.erase(std::minmax(a, b)); }
  void set_options(const NetworkOptions& options) { options_ = options; }

  void send(std::size_t from, std::size_t to, std::string bytes) {
    if (cuts_.count(std::minmax(from, to)) > 0 || world_.maybe(options_.loss)) {
      return;
    }
    if (world_.maybe(options_.duplication)) {
      deliver(from, to, bytes);
    }
    deliver(from, to, std::move(bytes));
  }

 private:
  void deliver(std::size_t from, std::size_t to, std::string bytes) {
    Duration delay = options_.delay_min + part(options_.delay_jitter);
    if (to == 0) {
      delay = delay + options_.asymmetry;
    }
    if (world_.maybe(options_.reorder)) {
      delay = delay + part(options_.detour_max);
    }
    world_.after(delay, [this, from, to, text = std::move(bytes)]() mutable {
      if (cuts_.count(std::minmax(from, to)) == 0) {
        receivers_[to](from, std::move(text));
      }
    });
  }
  Duration part(Duration most) {
    return Duration::nanos(
        static_cast<std::int64_t>(world_.uniform() * static_cast<double>(most.ns)));
  }

  World& world_;
  NetworkOptions options_;
  std::vector<Receiver> receivers_;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;
};

}  // namespace tutti::sim
