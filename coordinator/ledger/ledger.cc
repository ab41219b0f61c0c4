#include "coordinator/ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace tutti::ledger {
namespace {

constexpr std::size_t kBlock = 8192;  // facts per block: 1 MiB
constexpr std::size_t kPage = 65536;  // seqs per index page
constexpr std::uint32_t kPhaseMax = 4096;

base::Error defect(std::uint32_t agent, std::uint64_t batch, const std::string& what) {
  return {base::ExitCode::kExecution,
          fmt::format("agent {}, record batch {}: {}; the batch is refused", agent, batch, what)};
}

}  // namespace

base::Result<Ledger> Ledger::open(const std::string& folder) {
  auto store = TextStore::open(folder);
  if (!store) {
    return tl::unexpected<base::Error>(store.error());
  }
  return Ledger(std::move(*store));
}

base::Status Ledger::check(std::uint32_t agent, const wire::RecordBatch& batch) const {
  if (agent > kAgentMax) {
    return tl::unexpected<base::Error>(
        defect(agent, batch.number, fmt::format("agent numbers end at {}", kAgentMax)));
  }
  if (batch.number == 0) {
    return tl::unexpected<base::Error>(defect(agent, 0, "batches count from 1"));
  }
  if (size_ + batch.records.size() > kSeqMax) {
    return tl::unexpected<base::Error>(
        defect(agent, batch.number, fmt::format("a run holds at most {} records", kSeqMax)));
  }
  for (const wire::Record& record : batch.records) {
    if (record.seq > kSeqMax || record.phase >= kPhaseMax) {
      return tl::unexpected<base::Error>(
          defect(agent, batch.number,
                 fmt::format("record of phase {}, seq {} is out of range (phase < {}, seq ≤ {})",
                             record.phase, record.seq, kPhaseMax, kSeqMax)));
    }
  }
  for (const wire::PhaseGaps& part : batch.gaps) {
    for (const auto& [cell, count] : part.cells) {
      if (part.phase >= kPhaseMax || cell >= stats::LiveHistogram::kCells) {
        return tl::unexpected<base::Error>(
            defect(agent, batch.number,
                   fmt::format("gaps of phase {}, cell {} are out of range (phase < {}, cell < {})",
                               part.phase, cell, kPhaseMax, stats::LiveHistogram::kCells)));
      }
    }
  }
  for (const wire::TokenCount& count : batch.tokens) {
    if (count.seq > kSeqMax || count.phase >= kPhaseMax || count.output < -1 ||
        count.after_first < -1) {
      return tl::unexpected<base::Error>(
          defect(agent, batch.number,
                 fmt::format("count of phase {}, seq {} is out of range: {} tokens, {} of them "
                             "after the first chunk",
                             count.phase, count.seq, count.output, count.after_first)));
    }
  }
  const auto log = batches_.find(agent);
  if (log != batches_.end() && log->second.beyond.size() >= kBatchGapMax) {
    return tl::unexpected<base::Error>(
        defect(agent, batch.number,
               fmt::format("{} batches arrived while batch {} is still not here", kBatchGapMax,
                           log->second.all_up_to + 1)));
  }
  return {};
}

bool Ledger::seen(std::uint32_t agent, std::uint64_t number) const {
  const auto log = batches_.find(agent);
  return log != batches_.end() &&
         (number <= log->second.all_up_to || log->second.beyond.count(number) != 0);
}

void Ledger::note_batch(std::uint32_t agent, std::uint64_t number) {
  BatchLog& log = batches_[agent];
  log.beyond.insert(number);
  while (!log.beyond.empty() && *log.beyond.begin() == log.all_up_to + 1) {
    log.beyond.erase(log.beyond.begin());
    ++log.all_up_to;
  }
}

std::uint32_t& Ledger::slot(std::uint32_t phase, base::Seq seq) {
  if (phase >= phases_.size()) {
    phases_.resize(phase + 1);
  }
  auto& pages = phases_[phase].pages;
  const std::size_t page = seq / kPage;
  if (page >= pages.size()) {
    pages.resize(page + 1);
  }
  if (pages[page].empty()) {
    pages[page].resize(kPage, 0);
  }
  return pages[page][seq % kPage];
}

std::uint32_t Ledger::position(std::uint32_t phase, base::Seq seq) const {
  if (phase >= phases_.size()) {
    return 0;
  }
  const auto& pages = phases_[phase].pages;
  const std::size_t page = seq / kPage;
  return page < pages.size() && !pages[page].empty() ? pages[page][seq % kPage] : 0;
}

void Ledger::note_doubled(const wire::Record& record, std::uint32_t agent, std::uint32_t there) {
  ++phases_[record.phase].doubled;
  if (doubled_examples_.size() < kDoubledExamples) {
    doubled_examples_.push_back({record.phase, record.seq, fact(there - 1).agent, agent});
  }
}

base::Status Ledger::store(std::uint32_t agent, const wire::Record& record) {
  packed_.clear();
  pack_texts(record, packed_);
  if (packed_.size() > std::numeric_limits<std::uint32_t>::max()) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("agent {}: the texts of phase {}, seq {} are {} bytes: too large",
                                  agent, record.phase, record.seq, packed_.size()));
  }
  Fact fact;
  if (!packed_.empty()) {
    auto at = store_.append(packed_);
    if (!at) {
      return tl::unexpected<base::Error>(at.error());
    }
    fact.text_at = *at;
    fact.text_bytes = static_cast<std::uint32_t>(packed_.size());
  }
  fact.due_at = record.due_at;
  fact.issued_at = record.issued_at;
  fact.sent_at = record.sent_at;
  fact.first_byte_at = record.first_byte_at;
  fact.first_token_at = record.first_token_at;
  fact.last_token_at = record.last_token_at;
  fact.done_at = record.done_at;
  fact.seq = static_cast<std::uint32_t>(record.seq);
  fact.sample = record.sample;
  fact.dns_us = record.dns_us;
  fact.connect_us = record.connect_us;
  fact.tls_us = record.tls_us;
  fact.content_events = record.content_events;
  fact.bytes_up = record.bytes_up;
  fact.bytes_down = record.bytes_down;
  fact.prompt_tokens = record.prompt_tokens;
  fact.completion_tokens = record.completion_tokens;
  fact.reasoning_tokens = record.reasoning_tokens;
  fact.malformed_events =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(record.malformed_events, UINT16_MAX));
  fact.agent = static_cast<std::uint16_t>(agent);
  fact.phase = record.phase;
  fact.worker = record.worker;
  fact.frontend = record.frontend;
  fact.http_status = record.http_status;
  fact.outcome = record.outcome;
  fact.failure = record.failure;
  fact.finish_reason = record.finish_reason;
  fact.streamed = record.streamed;
  fact.connection_reused = record.connection_reused;
  fact.resent = record.resent;
  if (size_ == blocks_.size() * kBlock) {
    blocks_.push_back(std::make_unique<Fact[]>(kBlock));
  }
  blocks_[size_ / kBlock][size_ % kBlock] = fact;
  ++size_;
  return {};
}

void Ledger::add_gaps(const wire::RecordBatch& batch) {
  for (const wire::PhaseGaps& part : batch.gaps) {
    if (part.phase >= phases_.size()) {
      phases_.resize(part.phase + 1U);
    }
    auto& gaps = phases_[part.phase].gaps;
    if (!gaps) {
      gaps = std::make_unique<stats::LiveHistogram>();
    }
    TUTTI_CHECK(gaps->add_cells(part.cells));  // check() has looked at them
  }
}

// The first one stands, as of records.
void Ledger::add_tokens(const wire::RecordBatch& batch) {
  for (const wire::TokenCount& count : batch.tokens) {
    phases_.resize(std::max<std::size_t>(phases_.size(), count.phase + 1U));
    auto& pages = phases_[count.phase].counts;
    const std::size_t page = count.seq / kPage;
    pages.resize(std::max(pages.size(), page + 1));
    if (pages[page].empty()) {
      pages[page].resize(kPage);
    }
    Count& here = pages[page][count.seq % kPage];
    if (here.output == Count::kNone) {
      ++token_counts_;
      here.output = count.output;
      here.after_first = count.after_first;
      here.without_template = count.without_template;
    }
  }
}

std::optional<wire::TokenCount> Ledger::tokens(std::uint32_t phase, base::Seq seq) const {
  const std::size_t page = seq / kPage;
  if (phase >= phases_.size() || page >= phases_[phase].counts.size() ||
      phases_[phase].counts[page].empty()) {
    return std::nullopt;
  }
  const Count& here = phases_[phase].counts[page][seq % kPage];
  if (here.output == Count::kNone) {
    return std::nullopt;
  }
  return wire::TokenCount{static_cast<std::uint16_t>(phase), seq, here.output, here.after_first,
                          here.without_template};
}

const stats::LiveHistogram* Ledger::gaps(std::uint32_t phase) const {
  return phase < phases_.size() ? phases_[phase].gaps.get() : nullptr;
}

base::Result<Accepted> Ledger::accept(std::uint32_t agent, const wire::RecordBatch& batch) {
  if (broken_) {
    return tl::unexpected<base::Error>(*broken_);
  }
  Accepted accepted;
  if (seen(agent, batch.number)) {
    ++repeated_batches_;
    accepted.repeated = true;
    return accepted;
  }
  if (auto fine = check(agent, batch); !fine) {
    return tl::unexpected<base::Error>(fine.error());
  }
  accepted.fresh.reserve(batch.records.size());
  for (const wire::Record& record : batch.records) {
    std::uint32_t& there = slot(record.phase, record.seq);
    if (there != 0) {
      note_doubled(record, agent, there);
      ++accepted.doubled;
      continue;
    }
    if (auto stored_now = store(agent, record); !stored_now) {
      broken_ = stored_now.error();
      return tl::unexpected<base::Error>(*broken_);
    }
    there = static_cast<std::uint32_t>(size_);
    ++phases_[record.phase].stored;
    accepted.fresh.push_back({record.phase, record.seq, record.outcome});
  }
  add_gaps(batch);
  add_tokens(batch);
  note_batch(agent, batch.number);
  return accepted;
}

const Fact& Ledger::fact(std::uint64_t i) const {
  TUTTI_CHECK(i < size_);
  return blocks_[i / kBlock][i % kBlock];
}

const Fact* Ledger::find(std::uint32_t phase, base::Seq seq) const {
  const std::uint32_t there = position(phase, seq);
  return there == 0 ? nullptr : &fact(there - 1);
}

base::Status Ledger::texts(const Fact& fact, Texts& out) const {
  std::string packed;
  if (fact.text_bytes > 0) {
    if (auto done = store_.read(fact.text_at, fact.text_bytes, packed); !done) {
      return done;
    }
  }
  if (!unpack_texts(packed, out)) {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("the texts of phase {}, seq {} do not read back: the text file "
                                  "is damaged",
                                  fact.phase, fact.seq));
  }
  return {};
}

std::uint64_t Ledger::stored(std::uint32_t phase) const {
  return phase < phases_.size() ? phases_[phase].stored : 0;
}

std::uint64_t Ledger::doubled_count(std::uint32_t phase) const {
  return phase < phases_.size() ? phases_[phase].doubled : 0;
}

std::uint64_t Ledger::never_issued(std::uint32_t phase, std::uint64_t issued_count) const {
  return stored(phase) - stored_below(phase, issued_count);
}

std::uint64_t Ledger::stored_below(std::uint32_t phase, std::uint64_t end) const {
  std::uint64_t here = 0;
  if (phase < phases_.size()) {
    const auto& pages = phases_[phase].pages;
    for (std::size_t page = 0; page < pages.size() && page * kPage < end; ++page) {
      const auto until = static_cast<std::ptrdiff_t>(
          std::min<std::uint64_t>(pages[page].size(), end - page * kPage));
      here += static_cast<std::uint64_t>(
          until - std::count(pages[page].begin(), pages[page].begin() + until, 0U));
    }
  }
  return here;
}

void Ledger::withhold(std::uint32_t phase, std::vector<base::Seq> seqs) {
  if (!seqs.empty()) {
    phases_.resize(std::max<std::size_t>(phases_.size(), phase + 1));
    std::erase_if(seqs, [&](base::Seq seq) { return position(phase, seq) != 0; });
    phases_[phase].withheld = std::move(seqs);
  }
}

bool Ledger::is_withheld(std::uint32_t phase, base::Seq seq) const {
  return phase < phases_.size() &&
         std::binary_search(phases_[phase].withheld.begin(), phases_[phase].withheld.end(), seq);
}

std::uint64_t Ledger::withheld_count(std::uint32_t phase) const {
  return phase < phases_.size() ? phases_[phase].withheld.size() : 0;
}

std::uint64_t Ledger::missing_count(std::uint32_t phase, std::uint64_t issued_count) const {
  return issued_count - stored_below(phase, issued_count) - withheld_count(phase);
}

std::vector<base::Seq> Ledger::missing(std::uint32_t phase, std::uint64_t issued_count,
                                       std::size_t most) const {
  std::vector<base::Seq> names;
  for (base::Seq seq = 0; seq < issued_count && names.size() < most; ++seq) {
    if (position(phase, seq) == 0 && !is_withheld(phase, seq)) {
      names.push_back(seq);
    }
  }
  return names;
}

void Ledger::set_clock(std::uint32_t agent, ClockMap map) {
  TUTTI_CHECK(agent <= kAgentMax);
  if (agent >= clocks_.size()) {
    clocks_.resize(agent + 1);
  }
  clocks_[agent] = std::move(map);
}

const ClockMap& Ledger::clock(std::uint32_t agent) const {
  static const ClockMap kNone;
  return agent < clocks_.size() ? clocks_[agent] : kNone;
}

}  // namespace tutti::ledger
