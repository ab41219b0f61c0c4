#include "agent/session/reply_counter.h"

#include <pthread.h>

#include <algorithm>
#include <semaphore>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/ring.h"
#include "common/model/reply_tokens.h"
#include "common/sys/process.h"

namespace tutti::session {
namespace {

std::uint64_t bytes_of(const wire::OutputText& text) {
  return text.content_first.size() + text.content_rest.size() + text.reasoning_first.size() +
         text.reasoning_rest.size() + text.tool_calls.size();
}

}  // namespace

struct ReplyCounter::Job {
  ReplyTask task;
  std::uint64_t bytes = 0;
  std::uint64_t generation = 0;
  model::ReplyTokens tokens;
  bool counted = false;
};

// One thread and its two rings. No more jobs are on the way than a ring holds, so pushing back
// never fails.
class ReplyCounter::Lane {
 public:
  Lane(const model::TokenCounter& counter, const std::atomic<std::uint64_t>& generation)
      : counter_(counter), generation_(generation), thread_([this] { run_in_spare_time(); }) {}
  ~Lane() {
    stop_ = true;
    ready_.release();
    thread_.join();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Session.
  bool push(std::unique_ptr<Job>& job) {
    if (on_the_way_ == kQueueMax) {
      return false;
    }
    ++on_the_way_;
    jobs_.push(std::move(job));
    ready_.release();
    return true;
  }
  std::unique_ptr<Job> pop() {
    std::unique_ptr<Job> job;
    if (done_.pop(job)) {
      --on_the_way_;
    }
    return job;
  }
  void hurry() {
    if (!hurry_.exchange(true)) {
      ready_.release();  // it may be asleep
      thread_ = std::thread([this, before = std::move(thread_)]() mutable {
        before.join();  // the ring has one consumer at a time
        sys::name_this_thread("tutti-count");
        run([] { return false; });
      });
    }
  }
  base::Duration cpu() {
    return base::Duration{cpu_before_ns_} + sys::thread_cpu(thread_.native_handle());
  }

 private:
  void run_in_spare_time() {
    sys::name_this_thread("tutti-count");
    sys::take_spare_time();
    run([this] { return hurry_.load(); });
    cpu_before_ns_ = sys::thread_cpu().ns;
  }
  // Until it is stopped, or `enough`.
  template <class Enough>
  void run(Enough enough) {
    std::unique_ptr<Job> job;
    while (true) {
      ready_.acquire();
      if (stop_ || enough()) {
        ready_.release();  // whoever comes after this thread has the same to do
        return;
      }
      if (!jobs_.pop(job)) {
        continue;
      }
      if (job->generation == generation_.load(std::memory_order_relaxed)) {
        count(*job);
      }
      done_.push(std::move(job));
    }
  }
  void count(Job& job) {
    const wire::OutputText& text = job.task.text;
    const auto tokens =
        model::count_reply(counter_, {text.content_first, text.content_rest, text.reasoning_first,
                                      text.reasoning_rest, text.tool_calls});
    job.counted = tokens.has_value();
    job.tokens = tokens.value_or(model::ReplyTokens{});
  }

  const model::TokenCounter& counter_;
  const std::atomic<std::uint64_t>& generation_;
  base::SpscRing<std::unique_ptr<Job>> jobs_{kQueueMax};
  base::SpscRing<std::unique_ptr<Job>> done_{kQueueMax};
  std::counting_semaphore<> ready_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> hurry_{false};
  std::atomic<std::int64_t> cpu_before_ns_{0};  // of the thread that handed over
  std::size_t on_the_way_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

std::size_t ReplyCounter::threads_for(std::uint32_t cores, std::uint32_t workers) {
  constexpr std::uint32_t kMost = 4;
  const std::uint32_t taken = workers + 1;
  return cores > taken ? std::min(cores - taken, kMost) : 1;
}

ReplyCounter::ReplyCounter(model::TokenCounter counter, std::size_t threads)
    : counter_(std::move(counter)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) {
    lanes_.push_back(std::make_unique<Lane>(counter_, generation_));
  }
}

ReplyCounter::~ReplyCounter() {
  drop();
  lanes_.clear();
}

void ReplyCounter::add(std::vector<ReplyTask>&& replies) {
  for (ReplyTask& reply : replies) {
    auto job = std::make_unique<Job>();
    job->task = std::move(reply);
    job->bytes = bytes_of(job->task.text);
    job->generation = generation_.load(std::memory_order_relaxed);
    const std::uint64_t bytes = job->bytes;
    next_ = (next_ + 1) % lanes_.size();
    if (queued_bytes_ + bytes > kBytesMax || !lanes_[next_]->push(job)) {
      ++refused_;
      continue;
    }
    ++waiting_;
    ++queued_;
    queued_bytes_ += bytes;
    peak_.replies = std::max(peak_.replies, queued_);
    peak_.bytes = std::max(peak_.bytes, queued_bytes_);
  }
}

void ReplyCounter::settle(const Job& job, RepliesCounted& out) {
  --queued_;
  queued_bytes_ -= job.bytes;
  if (job.generation != generation_.load(std::memory_order_relaxed)) {
    return;
  }
  --waiting_;
  if (!job.counted) {
    ++out.uncounted;
    return;
  }
  ++counted_;
  out.counts.push_back({job.task.phase, job.task.seq, static_cast<std::int32_t>(job.tokens.output),
                        static_cast<std::int32_t>(job.tokens.after_first),
                        job.tokens.without_template});
}

bool ReplyCounter::take(RepliesCounted& out) {
  out.counts.clear();
  out.uncounted = std::exchange(refused_, 0);
  for (const auto& lane : lanes_) {
    while (auto job = lane->pop()) {
      settle(*job, out);
    }
  }
  uncounted_ += out.uncounted;
  return out.uncounted > 0 || !out.counts.empty();
}

void ReplyCounter::drop() {
  uncounted_ += waiting_ + refused_;
  waiting_ = 0;
  refused_ = 0;
  generation_.fetch_add(1, std::memory_order_relaxed);
}

void ReplyCounter::hurry() {
  for (const auto& lane : lanes_) {
    lane->hurry();
  }
}

// While one thread hands over to the next, the time of the first is not seen: it is no less for
// that.
base::Duration ReplyCounter::cpu() {
  base::Duration sum{};
  for (const auto& lane : lanes_) {
    sum = sum + lane->cpu();
  }
  cpu_told_ = std::max(cpu_told_, sum);
  return cpu_told_;
}

ReplyCounter::Peak ReplyCounter::take_peak() {
  return std::exchange(peak_, Peak{queued_, queued_bytes_});
}

}  // namespace tutti::session
