#include "tests/bench/centre_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/id.h"
#include "common/stats/live_histogram.h"
#include "common/wire/codec.h"
#include "common/wire/envelope.h"

namespace tutti::centre {
namespace {

constexpr std::uint64_t kBatchRecords = 256;

// Limits are left out: no descriptor, port or byte of memory is spent on a query here.
wire::Hello hello_of(std::uint32_t index) {
  wire::Hello hello;
  hello.software_version = TUTTI_VERSION;
  hello.agent_name = fmt::format("agent-{:04}", index);
  hello.host = fmt::format("host-{:03}", index / 8);
  hello.pid = static_cast<std::uint32_t>(getpid());
  hello.cores = 8;
  hello.workers = 1;
  return hello;
}

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDULL;
  return x ^ (x >> 33);
}

}  // namespace

TimerWheel::TimerWheel(Instant now, Duration longest)
    : next_(cell_of(now)), cells_(static_cast<std::size_t>(longest.ns / kCell.ns) + 8) {}

void TimerWheel::add(const Flight& flight) {
  const auto size = static_cast<std::int64_t>(cells_.size());
  const std::int64_t cell = std::clamp(cell_of(flight.done_at) + 1, next_, next_ + size - 1);
  cells_[static_cast<std::size_t>(cell % size)].push_back(flight);
}

void TimerWheel::take(Instant now, std::vector<Flight>& out) {
  const auto size = static_cast<std::int64_t>(cells_.size());
  for (; next_ <= cell_of(now); ++next_) {
    auto& cell = cells_[static_cast<std::size_t>(next_ % size)];
    out.insert(out.end(), cell.begin(), cell.end());
    cell.clear();
  }
}

CentreAgent::CentreAgent(std::uint32_t index, wire::DialSocket socket, const Service& service,
                         TimerWheel& wheel, Instant now)
    : index_(index),
      service_(service),
      wheel_(wheel),
      socket_(std::move(socket)),
      link_(
          [] {
            wire::LinkConfig config;
            config.lost_after = Duration::seconds(60);
            return config;
          }(),
          base::fresh_id(), now),
      machine_(session::AgentConfig{hello_of(index)}),
      text_(service.text_bytes, 'x') {}

void CentreAgent::begin(Instant now) {
  now_ = now;
  feed(session::Connected{false});
}

void CentreAgent::turn(Instant now) {
  now_ = now;
  while (socket_.receive(bytes_)) {
    take(bytes_);
  }
  if (!exit_) {
    if (!lost_told_ && link_.lost(now_)) {
      lost_told_ = true;
      feed(session::LinkLost{"silence"});
    }
    start_queries();
    deliver();
    if (now_ >= machine_.next_tick()) {
      feed(session::Tick{});
    }
  }
  if (touched_ || now_ >= link_.next_deadline()) {
    poll();
  }
}

void CentreAgent::take(const std::string& bytes) {
  auto frame = wire::decode_envelope(bytes);
  if (!frame) {
    return;
  }
  touched_ = true;
  delivered_.clear();
  link_.receive(std::move(*frame), now_, delivered_);
  for (const auto& each : delivered_) {
    if (auto message = wire::decode(each.plane, each.payload); message && !exit_) {
      feed(session::MessageFrom{std::move(*message)});
    }
  }
}

void CentreAgent::feed(session::Event event) {
  std::vector<session::Command> commands;
  machine_.step(std::move(event), now_, commands);
  for (auto& command : commands) {
    perform(std::move(command));
  }
}

void CentreAgent::perform(session::Command&& command) {
  if (const auto* say = std::get_if<session::Send>(&command)) {
    send(say->message);
  } else if (const auto* terms = std::get_if<session::SetLiveness>(&command)) {
    // The coordinator's silence is what this measures, not what it must survive.
    link_.set_liveness(terms->heartbeat, std::max(terms->lost_after, Duration::seconds(60)));
  } else if (std::holds_alternative<session::OpenBodies>(command)) {
    feed(session::BodiesOpened{true, {}});
  } else if (const auto* start = std::get_if<session::EngineStart>(&command)) {
    const wire::Reach reach{true, 100, {}};
    feed(session::EngineWarmed{
        {}, std::vector<wire::Reach>(start->target.urls.size(), reach), start->slots});
  } else if (const auto* arm = std::get_if<session::EngineArm>(&command)) {
    armed_ = arm->phase;
    progress_ = {};
    progress_.phase = armed_.phase;
    tally_.slots = armed_.slots;
  } else if (const auto* work = std::get_if<session::EngineIssue>(&command)) {
    queue_.insert(queue_.end(), work->commands.begin(), work->commands.end());
    tally_.commands += work->commands.size();
  } else if (const auto* back = std::get_if<session::EngineRecall>(&command)) {
    recall(*back);
  } else if (std::holds_alternative<session::EngineAbort>(command)) {
    aborted_ = true;  // what is in flight ends when its time comes, as cancelled
    std::vector<base::Seq> unstarted;
    for (const auto& each : queue_) {
      unstarted.push_back(each.seq);
    }
    queue_.clear();
    release();
    feed(session::EngineAborted{armed_.phase, std::move(unstarted)});
  } else if (const auto* read = std::get_if<session::ReadGauges>(&command)) {
    feed(session::Gauges{gauges(read->close_interval)});
  } else if (const auto* spool = std::get_if<session::SpoolAppend>(&command)) {
    batches_ = spool->batch.number;
  } else if (const auto* forget = std::get_if<session::SpoolForget>(&command)) {
    stored_ = forget->number;
  } else if (auto* exit = std::get_if<session::Exit>(&command)) {
    exit_ = std::move(*exit);
  }
}

void CentreAgent::recall(const session::EngineRecall& command) {
  std::vector<base::Seq> unstarted;
  for (const auto& each : queue_) {
    unstarted.push_back(each.seq);
  }
  queue_.clear();
  tally_.returned += unstarted.size();
  feed(session::EngineRecalled{command.phase, command.number, std::move(unstarted)});
}

void CentreAgent::send(const wire::Message& message) {
  backlog_.push_back(wire::encode(message));
  flush_backlog();
}

void CentreAgent::flush_backlog() {
  while (!backlog_.empty() && link_.can_send(backlog_.front().bytes.size())) {
    link_.send(backlog_.front().plane, std::move(backlog_.front().bytes), now_);
    backlog_.pop_front();
    touched_ = true;
  }
}

void CentreAgent::poll() {
  touched_ = false;
  flush_backlog();
  frames_.clear();
  link_.poll(now_, frames_);
  for (const auto& frame : frames_) {
    socket_.send(wire::encode_envelope(frame));
  }
}

// ---- the fake engine -------------------------------------------------------------------------

void CentreAgent::start_queries() {
  while (!queue_.empty() && tally_.in_flight < armed_.slots && now_ >= armed_.start_at) {
    Flight flight{index_, queue_.front(), armed_.start_at + queue_.front().due_offset, now_, {}};
    if (now_ < flight.due_at) {
      return;
    }
    queue_.pop_front();
    const auto spread = static_cast<std::int64_t>(mixed(flight.command.seq) % 1024);
    flight.done_at = now_ + Duration{service_.mean.ns / 2 + service_.mean.ns / 1024 * spread};
    ++tally_.in_flight;
    ++progress_.started;
    if (service_.hold && !released_) {
      done_.push_back(flight);
    } else {
      wheel_.add(flight);
    }
  }
}

void CentreAgent::ended(const Flight& flight) { done_.push_back(flight); }

void CentreAgent::release() { released_ = true; }

void CentreAgent::deliver() {
  if (done_.empty() || (service_.hold && !released_)) {
    return;
  }
  const std::uint64_t waiting = batches_ - stored_;
  std::uint64_t room = (kUnackedMax - std::min(kUnackedMax, waiting)) * kBatchRecords;
  session::RecordsDone event;
  for (; room > 0 && !done_.empty(); --room) {
    event.records.push_back(record_of(done_.front()));
    done_.pop_front();
  }
  if (event.records.empty()) {
    return;
  }
  tally_.records += event.records.size();
  tally_.in_flight -= event.records.size();
  progress_.done += event.records.size();
  progress_.output_tokens += event.records.size() * service_.tokens;
  progress_.last_response_at = now_;
  feed(std::move(event));
}

wire::Progress CentreAgent::gauges(bool close_interval) {
  wire::Progress progress = progress_;
  progress.in_flight = static_cast<std::uint32_t>(tally_.in_flight);
  progress.queued = static_cast<std::uint32_t>(queue_.size());
  progress.frontends = {{progress.in_flight, progress.started, progress.done, 0}};
  if (close_interval) {
    progress.health.from = progress_.health.to.is_set() ? progress_.health.to : armed_.start_at;
    progress.health.to = progress_.health.to = now_;
    progress.health.cpu_busiest_worker = 0.2;
    progress.health.rss_bytes = std::uint64_t{64} << 20;
  }
  return progress;
}

wire::Record CentreAgent::record_of(const Flight& flight) const {
  const Instant done = std::max(flight.done_at, flight.issued_at + Duration::micros(200));
  const Duration life = done - flight.issued_at;
  wire::Record record;
  record.seq = flight.command.seq;
  record.sample = flight.command.sample;
  record.phase = static_cast<std::uint16_t>(armed_.phase);
  record.outcome = aborted_ ? wire::Outcome::kCancelled : wire::Outcome::kOk;
  record.failure = aborted_ ? wire::Failure::kCancelled : wire::Failure::kNone;
  record.finish_reason = wire::FinishReason::kStop;
  record.http_status = 200;
  record.streamed = true;
  record.connection_reused = true;
  record.due_at = armed_.pacing == base::Pacing::kTimed ? flight.due_at : flight.issued_at;
  record.issued_at = flight.issued_at;
  record.sent_at = flight.issued_at +
                   Duration::nanos(20'000 + static_cast<std::int64_t>(mixed(record.seq) % 5'000));
  record.first_byte_at = flight.issued_at + Duration{life.ns / 5};
  record.first_token_at = record.first_byte_at + Duration::micros(40);
  record.done_at = done;
  record.last_token_at = done - Duration::micros(10);
  record.content_events = service_.tokens;
  record.bytes_up = 1'200;
  record.bytes_down = static_cast<std::uint32_t>(service_.tokens * 190 + service_.text_bytes);
  record.prompt_tokens = 40 + static_cast<std::int32_t>(record.sample);
  record.completion_tokens = static_cast<std::int32_t>(service_.tokens);
  if (service_.tokens > 1) {
    const std::int64_t gap = (record.last_token_at - record.first_token_at).ns /
                             static_cast<std::int64_t>(service_.tokens - 1);
    record.gaps.emplace_back(static_cast<std::uint16_t>(stats::LiveHistogram::cell_of(gap)),
                             service_.tokens - 1);
  }
  if (!text_.empty()) {
    record.output.content_first = text_.substr(0, 4);
    record.output.content_rest = text_.substr(record.output.content_first.size());
    record.output.has_content = true;
    record.output.has_rest = true;
  }
  return record;
}

}  // namespace tutti::centre
