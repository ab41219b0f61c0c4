#pragma once

// Bench: an AgentMachine whose coordinator, engine and disk are the test: events go in, and the
// commands that came out are taken by kind. Header only; one thread.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/session/agent_machine.h"

namespace tutti::session {

inline AgentConfig config_of() {
  AgentConfig config;
  config.hello.agent_name = "a";
  config.orphan_drain_max = base::Duration::seconds(10);
  return config;
}

struct Bench {
  explicit Bench(bool listening = false) : machine(config_of()) { step(Connected{listening}); }

  void step(Event event) { machine.step(std::move(event), now, commands); }
  void hear(wire::Message message) { step(MessageFrom{std::move(message)}); }
  void pass(base::Duration time) {
    const base::Instant until = now + time;
    while (now < until) {
      now = now + base::Duration::millis(5);
      step(Tick{});
    }
  }
  // Takes out the commands of one kind, in order.
  template <class Kind>
  std::vector<Kind> done() {
    std::vector<Kind> found;
    std::vector<Command> rest;
    for (Command& command : commands) {
      if (auto* one = std::get_if<Kind>(&command)) {
        found.push_back(std::move(*one));
      } else {
        rest.push_back(std::move(command));
      }
    }
    commands = std::move(rest);
    return found;
  }
  template <class Message>
  std::vector<Message> said() {
    std::vector<Message> found;
    std::vector<Command> rest;
    for (Command& command : commands) {
      auto* send = std::get_if<Send>(&command);
      if (send != nullptr && std::holds_alternative<Message>(send->message)) {
        found.push_back(std::get<Message>(std::move(send->message)));
      } else {
        rest.push_back(std::move(command));
      }
    }
    commands = std::move(rest);
    return found;
  }
  void get_ready() {
    hear(wire::Welcome{base::Id{3, 4}, 5, base::Duration::millis(250), base::Duration::seconds(3)});
    hear(wire::Prepare{});
    step(BodiesOpened{true, {}});
    step(EngineWarmed{{}, {{true, 10, ""}}, 4});
  }
  void arm(base::Pacing pacing = base::Pacing::kBurst, std::uint32_t slots = 1000) {
    hear(wire::ArmPhase{7, base::PhaseKind::kPerformance, pacing, slots, now});
  }
  void lease(base::Seq from, base::Seq to) {
    wire::Lease message;
    message.phase = 7;
    for (base::Seq seq = from; seq < to; ++seq) {
      base::IssueCommand command;
      command.seq = seq;
      message.commands.push_back(command);
    }
    hear(message);
  }
  void finish(base::Seq from, base::Seq to) {
    RecordsDone event;
    for (base::Seq seq = from; seq < to; ++seq) {
      wire::Record record;
      record.seq = seq;
      record.phase = 7;
      record.done_at = now;
      event.records.push_back(record);
    }
    step(std::move(event));
  }

  AgentMachine machine;
  base::Instant now{50'000'000'000};
  std::vector<Command> commands;
};

}  // namespace tutti::session
