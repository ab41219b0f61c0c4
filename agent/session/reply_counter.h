#pragma once

// ReplyCounter: counts the tokens of an agent's replies beside its run, on threads of its own that
// run when no other on their core wants to. Tasks go to them over rings and come back the same way,
// texts included: neither side waits for the other, and the session frees nothing that such a
// thread allocated, so that it never waits for a lock (the allocator's) of a thread that is not
// running. What finds no room is given back uncounted at once. All but the threads: owned by the
// session thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/session/agent_events.h"
#include "common/base/time.h"
#include "common/model/token_counter.h"

namespace tutti::session {

class ReplyCounter {
 public:
  static constexpr std::size_t kQueueMax = 65'536;                      // replies, of one thread
  static constexpr std::uint64_t kBytesMax = std::uint64_t{256} << 20;  // of all their texts

  // Threads for a host with so many cores: those that its workers and its session leave, 1 at
  // least, 4 at most.
  static std::size_t threads_for(std::uint32_t cores, std::uint32_t workers);

  ReplyCounter(model::TokenCounter counter, std::size_t threads);
  // Waits for the replies at hand, one per thread.
  ~ReplyCounter();
  ReplyCounter(const ReplyCounter&) = delete;
  ReplyCounter& operator=(const ReplyCounter&) = delete;

  void add(std::vector<ReplyTask>&& replies);
  // From now on the threads run as others do: those that wait for spare time hand over to new ones,
  // as the system lets nobody without rights out of the idle class again.
  void hurry();
  // What has been decided since; false: nothing.
  bool take(RepliesCounted& out);
  // Nobody waits for what was added so far: no later take() speaks of it.
  void drop();

  // Of all threads, ever.
  base::Duration cpu();
  std::uint64_t counted() const { return counted_; }      // ever
  std::uint64_t uncounted() const { return uncounted_; }  // ever: no room, no count, or dropped
  // The most that waited or was being counted at a time since the last call.
  struct Peak {
    std::uint64_t replies = 0;
    std::uint64_t bytes = 0;
  };
  Peak take_peak();

 private:
  struct Job;
  class Lane;

  void settle(const Job& job, RepliesCounted& out);

  const model::TokenCounter counter_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t next_ = 0;                      // lane
  std::atomic<std::uint64_t> generation_{0};  // of what is waited for; drop() begins a new one
  std::uint64_t refused_ = 0;                 // not told by take() yet
  std::uint64_t waiting_ = 0;                 // of this generation
  std::uint64_t queued_ = 0;                  // of any generation
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t counted_ = 0;
  std::uint64_t uncounted_ = 0;
  Peak peak_;
  base::Duration cpu_told_{};
};

}  // namespace tutti::session
