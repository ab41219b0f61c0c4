// What an agent's machine has put into its spool beside the batches, and when it lets go of them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/wire/codec.h"
#include "tests/unit/agent_bench.h"

namespace tutti::session {
namespace {

// The kinds of notes in the spool, in order, and the last Drained and Goodbye of them.
struct Notes {
  std::vector<std::string> kinds;
  wire::Drained drained;
  wire::Goodbye goodbye;
  explicit Notes(const std::vector<SpoolNote>& notes) {
    for (const SpoolNote& note : notes) {
      kinds.emplace_back(wire::name_of(note.message));
      if (const auto* end = std::get_if<wire::Drained>(&note.message)) {
        drained = *end;
      } else if (const auto* last = std::get_if<wire::Goodbye>(&note.message)) {
        goodbye = *last;
      }
    }
  }
};

TEST(AgentMachine, AnOrphansSpoolTellsWhoseItIsWhatItStartedAndWhyItEnded) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 5);
  bench.step(LinkLost{"silence"});
  bench.step(EngineRecalled{7, 0, {3, 4}});
  bench.finish(0, 3);
  ASSERT_EQ(bench.done<Exit>().size(), 1U);
  const Notes notes(bench.done<SpoolNote>());
  EXPECT_EQ(notes.kinds,
            (std::vector<std::string>{"Hello", "Prepare", "ArmPhase", "Drained", "Goodbye"}));
  EXPECT_EQ(notes.drained, (wire::Drained{7, 3, 1}));
  EXPECT_NE(notes.goodbye.reason.find("silence"), std::string::npos);
}

TEST(AgentMachine, TheSpoolNeverHoldsTheTargetsSecrets) {
  Bench bench;
  bench.hear(wire::Welcome{});
  wire::Prepare prepare;
  prepare.target.headers = {{"authorization", "Bearer secret"}};
  prepare.target.urls = {"http://user:secret@host/"};
  prepare.run_note = "the note";
  prepare.slots = 9;
  bench.hear(prepare);
  bench.step(BodiesOpened{true, {}});
  std::size_t seen = 0;
  for (const SpoolNote& note : bench.done<SpoolNote>()) {
    if (const auto* kept = std::get_if<wire::Prepare>(&note.message)) {
      EXPECT_EQ(kept->target, wire::TargetSpec{});
      EXPECT_EQ(kept->run_note, "the note");
      EXPECT_EQ(kept->slots, 9U);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 1U);
}

TEST(AgentMachine, OnlyTheCoordinatorsGoodbyeReleasesTheSpool) {
  Bench bench;
  bench.get_ready();
  bench.arm();
  bench.lease(0, 1);
  bench.finish(0, 1);
  bench.hear(wire::BatchAck{1});
  EXPECT_TRUE(bench.done<SpoolRelease>().empty());
  bench.hear(wire::Drain{7});
  bench.hear(wire::Goodbye{});
  EXPECT_EQ(bench.done<SpoolRelease>().size(), 1U);
}

}  // namespace
}  // namespace tutti::session
