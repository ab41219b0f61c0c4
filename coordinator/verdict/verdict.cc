#include "coordinator/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::verdict {
namespace {

std::string plural(std::uint64_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string named(const std::vector<base::Seq>& seqs, std::uint64_t all) {
  std::string text;
  for (std::size_t i = 0; i < seqs.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", seqs[i]);
  }
  return all > seqs.size() && !seqs.empty() ? text + ", …" : text;
}

// "URL: 12 of 40 failed, the first at 1.204 s, …"
std::string trouble(const FrontendCount& frontend) {
  if (frontend.failed == 0) {
    return fmt::format("frontend {}: none of its {} queries had ended when the run was stopped",
                       frontend.url, frontend.completed);
  }
  std::string text = fmt::format(
      "frontend {}: {} of {} failed, the first at {:.3f} s, the last at "
      "{:.3f} s",
      frontend.url, frontend.failed, frontend.completed, frontend.first_failure.to_seconds(),
      frontend.last_failure.to_seconds());
  if (!frontend.last_success) {
    return text + "; it never succeeded";
  }
  const bool came_back = *frontend.last_success > frontend.last_failure;
  return fmt::format("{}; {} {:.3f} s", text,
                     came_back                                         ? "it answered again until"
                     : *frontend.last_success < frontend.first_failure ? "no success after"
                                                                       : "its last success was at",
                     frontend.last_success->to_seconds());
}

class Judge {
 public:
  Judge(const RunCount& run, const Rules& rules) : run_(run), rules_(rules) {}

  Verdict finish() {
    for (auto at = run_.watchdogs.begin(); at != run_.watchdogs.end(); ++at) {
      if (std::find(run_.watchdogs.begin(), at, *at) == at) {  // a full disk says it at each batch
        failure(*at);
      }
    }
    for (const AgentCount& agent : run_.agents) {
      look_at(agent);
    }
    for (const PhaseCount& phase : run_.phases) {
      look_at(phase);
    }
    // Not a reason of its own: the failed requests are, if the rules say so. Where and since when.
    for (const FrontendCount& frontend : run_.frontends) {
      out_.warnings.push_back(trouble(frontend));
    }
    if (run_.stopped_early && !run_.interrupted && out_.exit_code == base::ExitCode::kOk) {
      failure("the run stopped before its end; its numbers are partial");
    }
    if (run_.interrupted) {
      reason(Weight::kFailure, "the run was interrupted before its end; its numbers are partial");
      out_.exit_code = base::ExitCode::kInterrupted;
    }
    out_.valid = out_.reasons.empty();
    return std::move(out_);
  }

 private:
  void reason(Weight weight, std::string text) {
    out_.reasons.push_back({weight, std::move(text)});
  }
  void failure(std::string text) {
    reason(Weight::kFailure, std::move(text));
    out_.exit_code = base::ExitCode::kExecution;
  }

  void look_at(const AgentCount& agent) {
    if (agent.lost_after) {
      failure(fmt::format("agent {} was lost {:.3f} s after the start", agent.name,
                          agent.lost_after->to_seconds()));
    }
    if (agent.records_lost > 0) {
      failure(fmt::format("agent {} lost {}: its recorder was full", agent.name,
                          plural(agent.records_lost, "record", "records")));
    }
    if (agent.unspooled_batches > 0) {
      out_.warnings.push_back(fmt::format(
          "agent {} had no room on its disk for {}: a lost coordinator would have taken them along",
          agent.name, plural(agent.unspooled_batches, "batch of records", "batches of records")));
    }
  }

  void look_at(const PhaseCount& phase) {
    if (phase.missing > 0) {
      failure(fmt::format("phase {}: {} of {} issued requests ended without a record (seq {})",
                          phase.name, phase.missing, phase.issued,
                          named(phase.missing_examples, phase.missing)));
    }
    if (phase.doubled > 0) {
      failure(fmt::format("phase {}: {} recorded twice", phase.name,
                          plural(phase.doubled, "request was", "requests were")));
    }
    if (phase.never_issued > 0) {
      failure(fmt::format("phase {}: {} for requests that were never issued", phase.name,
                          plural(phase.never_issued, "record came", "records came")));
    }
    look_at_failures(phase);
  }

  void look_at_failures(const PhaseCount& phase) {
    // A run that was stopped at once has nothing to show, and says so with its interruption.
    if (phase.issued == 0) {
      if (phase.kind == base::PhaseKind::kPerformance && !run_.interrupted) {
        failure(fmt::format("phase {}: no request was issued", phase.name));
      }
      return;
    }
    if (phase.failed == 0) {
      return;
    }
    const bool all = phase.failed >= phase.completed;
    if (all && phase.kind != base::PhaseKind::kWarmup) {
      failure(fmt::format("phase {}: every request failed ({} of {})", phase.name, phase.failed,
                          phase.completed));
    } else if (phase.kind == base::PhaseKind::kWarmup) {
      out_.warnings.push_back(fmt::format("phase {}: {} of {} warm-up requests failed", phase.name,
                                          phase.failed, phase.completed));
    } else if (rules_.failed_requests_invalidate) {
      reason(Weight::kFlaw,
             fmt::format("phase {}: {} of {} requests failed; a submission point allows none",
                         phase.name, phase.failed, phase.completed));
    } else {
      out_.warnings.push_back(fmt::format("phase {}: {} of {} requests failed", phase.name,
                                          phase.failed, phase.completed));
    }
  }

  const RunCount& run_;
  const Rules& rules_;
  Verdict out_;
};

}  // namespace

Verdict judge(const RunCount& run, const Rules& rules) { return Judge(run, rules).finish(); }

}  // namespace tutti::verdict
