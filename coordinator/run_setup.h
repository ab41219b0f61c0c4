#pragma once

// What the running commands (benchmark, probe) share: from a config to the host's settings, from a
// run's outcome to the facts of its report, and the prompts that event files quote.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/spec/config.h"
#include "coordinator/conduct/prepare.h"
#include "coordinator/conduct/run_host.h"
#include "coordinator/report/run_facts.h"

namespace tutti {

struct RunTokenizer;

// From the files that `distributed.keys` and `agent_keys` name; empty without them. kSetup with the
// file and the remedy.
struct RunKeys {
  std::optional<wire::KeyPair> own;
  std::vector<std::string> agents;
};
base::Result<RunKeys> read_run_keys(const spec::Distributed& distributed);

// Everything but the live view's choice and the keys. `tokenizer`: null: none counts. It and
// `input` must outlive the run.
conduct::HostSettings host_settings(const spec::Config& config, const conduct::RunInput& input,
                                    const std::string& folder,
                                    const RunTokenizer* tokenizer = nullptr);

report::RunFacts run_facts(const spec::Config& config, const conduct::HostSettings& settings,
                           const conduct::RunOutcome& outcome);

// Prompts as sent: the row's, with the salt of its query in front.
class SentPrompts final : public report::PromptSource {
 public:
  explicit SentPrompts(const conduct::RunInput& input);
  void prompt(std::uint32_t phase, base::Seq seq, base::SampleIndex sample,
              report::Prompt& out) const override;
  void turn(std::uint32_t phase, base::Seq seq, report::TurnName& out) const override;
  std::optional<base::SampleIndex> sample_of(std::uint32_t phase, base::Seq seq) const override;

 private:
  void conversation_prompt(std::uint32_t phase, base::Seq seq, base::SampleIndex sample,
                           report::Prompt& out) const;

  const conduct::RunInput& input_;
  std::vector<std::vector<std::uint64_t>> salts_;  // by phase, by seq; empty when unsalted
  // Of queries that have no record the schedule alone knows the sample. Drawn on first need.
  mutable std::vector<std::vector<base::SampleIndex>> samples_;
};

}  // namespace tutti
