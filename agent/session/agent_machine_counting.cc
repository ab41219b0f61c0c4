// AgentMachine: which replies are counted, and how long an end waits for their counts.

#include <utility>

#include "agent/session/agent_machine.h"

namespace tutti::session {

using base::Instant;

// Copies of texts go to the counting threads; the records themselves wait for nobody.
void AgentMachine::count_tokens(const std::vector<wire::Record>& records) {
  if (!phase_.counts || phase_.aborted) {
    return;
  }
  CountReplies command;
  for (const wire::Record& record : records) {
    const wire::OutputText& text = record.output;
    const bool empty = text.content_first.empty() && text.content_rest.empty() &&
                       text.reasoning_first.empty() && text.reasoning_rest.empty() &&
                       text.tool_calls.empty();
    if (record.phase == phase_.number && record.outcome == wire::Outcome::kOk && !empty) {
      command.replies.push_back({record.phase, record.seq, text});
    }
  }
  if (!command.replies.empty()) {
    counting_ += command.replies.size();
    out_->emplace_back(std::move(command));
  }
}

void AgentMachine::on(RepliesCounted& event) {
  const std::uint64_t answered = event.counts.size() + event.uncounted;
  if (answered > counting_) {
    ++illegal_;  // nobody asked, or nobody waits any more
    return;
  }
  counting_ -= answered;
  batcher_.add_counts(std::move(event.counts), now_);
}

// Whether an end must wait for counts; when their time is over it need not.
bool AgentMachine::counts_awaited() {
  if (counting_ == 0) {
    return false;
  }
  if (!counting_since_.is_set()) {
    counting_since_ = now_;
    out_->emplace_back(HurryCounting{});
  }
  const bool leaving = state_ == AgentState::kLeaving;
  const Instant until = leaving ? leave_by_ : counting_since_ + prepare_.counting.drain_max;
  if (!phase_.aborted && now_ < until) {
    return true;
  }
  stop_counting();
  return false;
}

// What has no count yet is counted by the coordinator, which gets the texts with the records.
void AgentMachine::stop_counting() {
  phase_.counts = false;
  if (counting_ > 0) {
    counting_ = 0;
    out_->emplace_back(StopCounting{});
  }
}

}  // namespace tutti::session
