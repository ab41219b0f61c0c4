#pragma once

// What happens to an AgentMachine and what it wants done: plain values. The host turns the link,
// the engine, the disk and signals into events and performs the commands in the order given.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/wire/messages.h"

namespace tutti::session {

// ---- events ----------------------------------------------------------------------------------

// A link to the coordinator exists. `listening`: it dialled us and speaks first.
struct Connected {
  bool listening = false;
};
struct MessageFrom {
  wire::Message message;
};
// This process has said nothing for so long that the coordinator must have given it up. Told before
// what came in meanwhile.
struct StoodStill {
  base::Duration silence{};
};
// This host was suspended: its clock is that much behind, and nobody knows what was missed.
struct Suspended {
  base::Duration lasted{};
};
struct LinkLost {
  std::string why;
};
// Answer to OpenBodies: the body set is on this host's disk already, or not; and the model to count
// with, if one was asked for.
struct BodiesOpened {
  bool present = false;
  std::string error;  // the disk failed
  bool model_present = false;
};
// Answer to the last StoreBodies of bodies or model; also to an earlier one that failed.
struct BodiesStored {
  std::string error;  // empty: whole, and its hash is right
};
// Answer to EngineStart.
struct EngineWarmed {
  std::string error;
  std::vector<wire::Reach> frontends;
  std::uint32_t connections_open = 0;
};
struct RecordsDone {
  std::vector<wire::Record> records;
};
// Of what CountReplies asked for. What is in neither has not been counted yet.
struct RepliesCounted {
  std::vector<wire::TokenCount> counts;
  std::uint64_t uncounted = 0;  // given up: no room in the queue, or no count; the coordinator's
};
// Answer to EngineRecall.
struct EngineRecalled {
  std::uint32_t phase = 0;
  std::uint32_t number = 0;
  std::vector<base::Seq> unstarted;
};
// Answer to EngineAbort: what was queued for `phase`, the machine's current one. Comes after every
// answer to an earlier EngineRecall.
struct EngineAborted {
  std::uint32_t phase = 0;
  std::vector<base::Seq> unstarted;
};
// Answer to ReadGauges.
struct Gauges {
  wire::Progress progress;
};
// A signal.
struct StopAsked {
  std::string reason;
};
struct Tick {};

using Event = std::variant<Connected, MessageFrom, StoodStill, Suspended, LinkLost, BodiesOpened,
                           BodiesStored, EngineWarmed, RecordsDone, RepliesCounted, EngineRecalled,
                           EngineAborted, Gauges, StopAsked, Tick>;

// ---- commands --------------------------------------------------------------------------------

struct Send {
  wire::Message message;
};
// The terms of the coordinator's Welcome, for the link.
struct SetLiveness {
  base::Duration heartbeat{};
  base::Duration lost_after{};
};
struct OpenBodies {
  std::string hash;
  std::uint64_t bytes = 0;
  std::uint32_t rows = 0;
  wire::ReplyCounting counting{};
};
struct StoreBodies {
  wire::BodyChunk chunk;
};
// Start the workers, try every frontend, open connections. `queue_max`: commands it must be able to
// hold that are not on the wire.
struct EngineStart {
  wire::TargetSpec target{};
  std::uint32_t slots = 0;
  std::size_t queue_max = 0;
};
struct EngineArm {
  wire::ArmPhase phase{};
};
struct EngineIssue {
  std::uint32_t phase = 0;
  std::vector<base::IssueCommand> commands;
  std::vector<wire::Trajectory> trajectories;  // as in wire::Lease
};
struct EngineRecall {
  std::uint32_t phase = 0;
  std::uint32_t number = 0;
};
struct EngineAbort {
  std::string reason;
};
// `close_interval`: the health of the interval since the last such, too.
struct ReadGauges {
  bool close_interval = false;
};
// Put the batch on disk; it is sent, if at all, right after.
struct SpoolAppend {
  wire::RecordBatch batch;
};
// Put into the spool what tells whose batches these are, and how far they go.
struct SpoolNote {
  wire::Message message;
};
// Texts of replies whose tokens are to be counted.
struct ReplyTask {
  std::uint16_t phase = 0;
  base::Seq seq = 0;
  wire::OutputText text;
};
struct CountReplies {
  std::vector<ReplyTask> replies;
};
// Nothing but counts is awaited any more: counting need not make way for a measurement.
struct HurryCounting {};
// Forget the replies that have no count yet: nobody waits for them any more.
struct StopCounting {};
// Batches ≤ number are stored by the coordinator.
struct SpoolForget {
  std::uint64_t number = 0;
};
// The coordinator has said goodbye: what it has stored need not be kept here.
struct SpoolRelease {};
// The last command: deliver what is queued on the link (bounded), stop the engine, end.
struct Exit {
  base::ExitCode code = base::ExitCode::kOk;
  std::string reason;
};

using Command =
    std::variant<Send, SetLiveness, OpenBodies, StoreBodies, EngineStart, EngineArm, EngineIssue,
                 EngineRecall, EngineAbort, ReadGauges, CountReplies, HurryCounting, StopCounting,
                 SpoolAppend, SpoolNote, SpoolForget, SpoolRelease, Exit>;

}  // namespace tutti::session
