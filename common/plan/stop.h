#pragma once

// StopRule: should issuing go on, stop, or has the phase failed? A rule is a pure function of
// counters and of the time since phase start; rules compose. The semantics are those of the
// reference client's mainline: no rule stops a phase for want of duration, a cap ends issuing but
// not the drain, and an idle system under test is a failure. The RunMachine owns its rules and
// calls them from one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/base/vocabulary.h"

namespace tutti::plan {

// All durations count from phase start.
struct PhaseCounters {
  base::Seq issued = 0;
  std::uint64_t in_flight = 0;
  bool stop_asked = false;
  // Newest byte of any reply, of any phase, that came since phase start; nothing until one came.
  std::optional<base::Duration> last_response;
  // When in_flight last rose from 0; nothing while it is 0.
  std::optional<base::Duration> in_flight_since;
  // A trajectory has ended and none is left to begin.
  bool first_user_done = false;
  // When issuing ended and the drain began; nothing before.
  std::optional<base::Duration> draining_since;
};

enum class Course : std::uint8_t { kProceed = 0, kStop = 1, kFail = 2 };

enum class StopCause : std::uint8_t {
  kNone = 0,
  kCount,         // every query of the schedule is issued
  kIssueCap,      // max_issue_duration_ms
  kAsked,         // a signal, or the other phases' end
  kResponseIdle,  // endpoint_response_idle_timeout_s
  kDrainTimeout,
  kRunTimeout,     // run_timeout_s
  kFirstUserDone,  // stop_issuing_on_first_user_complete
};

struct Decision {
  Course course = Course::kProceed;
  StopCause cause = StopCause::kNone;
  std::string reason;  // one line for people; empty while proceeding

  bool proceeds() const { return course == Course::kProceed; }
};

class StopRule {
 public:
  StopRule() = default;
  StopRule(const StopRule&) = delete;
  StopRule& operator=(const StopRule&) = delete;
  StopRule(StopRule&&) = delete;
  StopRule& operator=(StopRule&&) = delete;
  virtual ~StopRule() = default;

  virtual Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const = 0;
  // The earliest time at which evaluate() may change its mind with the counters as they are: when
  // to set a timer. Nothing when time alone never will.
  virtual std::optional<base::Duration> next_check(const PhaseCounters& counters) const;
};

// Stop once `total` are issued.
class CountReached final : public StopRule {
 public:
  explicit CountReached(base::Seq total) : total_(total) {}
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;

 private:
  base::Seq total_;
};

// Stop once issuing has lasted `cap` (> 0). What is in flight still drains.
class IssueCap final : public StopRule {
 public:
  explicit IssueCap(base::Duration cap);
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
  std::optional<base::Duration> next_check(const PhaseCounters& counters) const override;

 private:
  base::Duration cap_;
};

// Stop when a trajectory has ended and none is left to begin: from then on the load only falls.
class FirstUserDone final : public StopRule {
 public:
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
};

// Stop when somebody asked.
class StopAsked final : public StopRule {
 public:
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
};

// Fail when queries are in flight and for `limit` (> 0) no reply of any kind has come: since the
// later of the newest response and the moment in-flight left 0. Any response of any query resets
// it, so it sees a dead system, not a stuck query. Silent once a stop is asked.
class ResponseIdle final : public StopRule {
 public:
  explicit ResponseIdle(base::Duration limit);
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
  std::optional<base::Duration> next_check(const PhaseCounters& counters) const override;

 private:
  base::Duration limit_;
};

// Fail when the drain has lasted `limit` (> 0) and queries are still in flight.
class DrainTimeout final : public StopRule {
 public:
  explicit DrainTimeout(base::Duration limit);
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
  std::optional<base::Duration> next_check(const PhaseCounters& counters) const override;

 private:
  base::Duration limit_;
};

// Fail at `limit` (> 0) of time, whatever is going on. `since_start` is the run's then, not a
// phase's.
class RunTimeout final : public StopRule {
 public:
  explicit RunTimeout(base::Duration limit);
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
  std::optional<base::Duration> next_check(const PhaseCounters& counters) const override;

 private:
  base::Duration limit_;
};

// All rules of a phase as one. A failure outranks a stop; among equals the first rule added speaks.
class StopRules final : public StopRule {
 public:
  StopRules& add(std::unique_ptr<StopRule> rule);
  Decision evaluate(const PhaseCounters& counters, base::Duration since_start) const override;
  std::optional<base::Duration> next_check(const PhaseCounters& counters) const override;

 private:
  std::vector<std::unique_ptr<StopRule>> rules_;
};

}  // namespace tutti::plan
