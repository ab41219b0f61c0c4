#include "tests/sim/agent_node.h"

#include <utility>

namespace tutti::sim {
namespace {

constexpr std::size_t kUnreadMax = 4096;  // SocketOptions::queue_max

wire::Hello hello_of(const AgentOptions& options) {
  wire::Hello hello;
  hello.protocol_version = options.protocol_version;
  hello.software_version = "sim";
  hello.agent_name = options.name;
  hello.host = "host-" + options.name;
  hello.workers = 1;
  hello.fd_limit = 65'536;
  hello.ephemeral_ports = 28'000;
  hello.counts_tokens = true;
  return hello;
}

session::AgentConfig config_of(const AgentOptions& options) {
  session::AgentConfig config;
  config.hello = hello_of(options);
  return config;
}

}  // namespace

AgentNode::AgentNode(World& world, SimNetwork& network, Witness& witness, AgentOptions options)
    : world_(world),
      network_(network),
      witness_(witness),
      options_(std::move(options)),
      machine_(config_of(options_)),
      alarm_(world, options_.clock, [this] { turn(); }) {
  node_ = network_.add([this](std::size_t /*from*/, const std::string& bytes) {
    if (crashed_ || line_ == nullptr) {
      return;
    }
    if (world_.now() < frozen_until_) {
      if (unread_.size() < kUnreadMax) {
        unread_.push_back(bytes);
      }
      return;
    }
    note_standstill();
    hear(bytes);
    turn();
  });
  engine_ = std::make_unique<SimEngine>(
      world_, witness_, options_.clock, node_, options_.engine,
      SimEngine::Answers{
          [this](std::vector<wire::Record> records) {
            post(session::RecordsDone{std::move(records)});
          },
          [this](std::uint32_t phase, std::uint32_t number, std::vector<base::Seq> seqs) {
            post(session::EngineRecalled{phase, number, std::move(seqs)});
          },
          [this](std::uint32_t phase, std::vector<base::Seq> seqs) {
            post(session::EngineAborted{phase, std::move(seqs)});
          }});
  counter_ = std::make_unique<SimCounter>(world_, options_.counting, node_,
                                          [this](session::RepliesCounted counted) {
                                            if (!planted(Planted::kCountVanishes)) {
                                              post(std::move(counted));
                                            }
                                          });
}

void AgentNode::begin() {
  line_ = std::make_unique<Line>(network_, witness_, node_, 0, options_.link,
                                 base::Id{node_ + 1, 0xA9E27}, local());
  if (options_.listening) {
    line_->wait_for_a_word();
  }
  post(session::Connected{options_.listening});
}

void AgentNode::crash() {
  world_.note("crash", node_);
  crashed_ = true;
  engine_->crash();
  counter_->crash();
}

void AgentNode::hear(const std::string& bytes) {
  for (wire::Message& message : line_->receive(bytes, local())) {
    world_.note(wire::name_of(message), node_);
    inbox_.emplace_back(session::MessageFrom{std::move(message)});
  }
}

void AgentNode::note_standstill() {
  const wire::Link& link = line_->link();
  if (link.peer().is_set() && link.mute(local())) {
    inbox_.emplace_back(session::StoodStill{local() - link.spoke_at()});
  }
}

// Threads do not wake in step: the workers may be a little ahead of the session.
void AgentNode::freeze(Duration lasts) {
  world_.note("freeze", node_);
  engine_->freeze(lasts);
  const Duration late = Duration::micros(static_cast<std::int64_t>(world_.below(2000)));
  frozen_until_ = std::max(frozen_until_, world_.now() + lasts + late);
  counter_->freeze(frozen_until_);
  world_.at(frozen_until_, [this] { thaw(); });
}

void AgentNode::thaw() {
  if (world_.now() < frozen_until_ || crashed_ || line_ == nullptr) {
    return;
  }
  world_.note("thaw", node_);
  note_standstill();
  for (const std::string& bytes : std::exchange(unread_, {})) {
    hear(bytes);
  }
  turn();
}

void AgentNode::signal() {
  world_.note("signal", node_);
  if (!gone() && line_ != nullptr) {
    post(session::StopAsked{"SIGTERM"});
  }
}

void AgentNode::post(session::Event event) {
  inbox_.push_back(std::move(event));
  turn();
}

void AgentNode::turn() {
  if (crashed_ || turning_ || line_ == nullptr || world_.now() < frozen_until_) {
    return;
  }
  turning_ = true;
  const Instant now = local();
  if (!exited_ && line_->lost(now)) {
    inbox_.emplace_back(session::LinkLost{"silence"});
  }
  inbox_.emplace_back(session::Tick{});
  while (read_ < inbox_.size() && !exited_) {
    commands_.clear();
    machine_.step(std::move(inbox_[read_++]), now, commands_);
    for (session::Command& command : commands_) {
      perform(command);
    }
    if (std::exchange(new_terms_, false) && line_->link().mute(now)) {
      inbox_.emplace(inbox_.begin() + static_cast<std::ptrdiff_t>(read_),
                     session::StoodStill{now - line_->link().spoke_at()});
    }
  }
  inbox_.clear();
  read_ = 0;
  turning_ = false;
  line_->poll(now);
  set_alarm();
}

void AgentNode::set_alarm() {
  if (exited_ && (line_->done() || world_.now() >= gone_at_)) {
    return;
  }
  Instant next = line_->next_deadline();
  if (!exited_) {
    next = std::min(next, machine_.next_tick());
  }
  alarm_.set(next);
}

void AgentNode::perform(session::Command& command) {
  if (auto* send = std::get_if<session::Send>(&command)) {
    auto* const pong = std::get_if<wire::ClockPong>(&send->message);
    if (pong != nullptr && planted(Planted::kClockLies)) {
      pong->agent_received = pong->agent_received + Duration::millis(50);
      pong->agent_sent = pong->agent_sent + Duration::millis(50);
    }
    line_->send(send->message, local());
  } else if (auto* terms = std::get_if<session::SetLiveness>(&command)) {
    line_->set_liveness(terms->heartbeat, terms->lost_after);
    new_terms_ = true;
  } else if (std::holds_alternative<session::OpenBodies>(command)) {
    inbox_.emplace_back(session::BodiesOpened{options_.bodies_cached, {}, options_.bodies_cached});
  } else if (auto* bodies = std::get_if<session::StoreBodies>(&command)) {
    if (bodies->chunk.last) {
      inbox_.emplace_back(session::BodiesStored{});
    }
  } else if (auto* start = std::get_if<session::EngineStart>(&command)) {
    wire::Reach reach;
    reach.reachable = true;
    inbox_.emplace_back(session::EngineWarmed{
        options_.prepare_error, std::vector<wire::Reach>(start->target.urls.size(), reach), 0});
  } else if (auto* arm = std::get_if<session::EngineArm>(&command)) {
    engine_->arm(arm->phase);
  } else if (auto* issue = std::get_if<session::EngineIssue>(&command)) {
    engine_->issue(issue->phase, issue->commands, issue->trajectories);
  } else if (auto* recall = std::get_if<session::EngineRecall>(&command)) {
    engine_->recall(recall->phase, recall->number);
  } else if (std::holds_alternative<session::EngineAbort>(command)) {
    engine_->abort();
  } else if (std::holds_alternative<session::ReadGauges>(command)) {
    inbox_.emplace_back(session::Gauges{engine_->progress()});
  } else if (auto* replies = std::get_if<session::CountReplies>(&command)) {
    counter_->add(replies->replies);
  } else if (std::holds_alternative<session::StopCounting>(command)) {
    counter_->drop();
  } else if (auto* append = std::get_if<session::SpoolAppend>(&command)) {
    if (!planted(Planted::kNoSpool)) {
      spool_.push_back(std::move(append->batch));
    }
  } else if (auto* forget = std::get_if<session::SpoolForget>(&command)) {
    while (!spool_.empty() && spool_.front().number <= forget->number) {
      spool_.pop_front();
    }
  } else if (auto* exit = std::get_if<session::Exit>(&command)) {
    world_.note("exit", node_, static_cast<std::uint64_t>(exit->code));
    exited_ = true;
    gone_at_ = world_.now() + Duration::seconds(2);
    exit_code_ = exit->code;
    exit_reason_ = exit->reason;
    engine_->crash();
    counter_->crash();
  }
}

}  // namespace tutti::sim
