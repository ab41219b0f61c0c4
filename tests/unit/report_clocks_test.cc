// What an agent's clock can do to a report: with a right map nothing at all, with a wrong one
// nothing to TTFT, TPOT, ITL and latency.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/report/events.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_folder.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using namespace report_run;  // NOLINT: the tests' vocabulary
using Json = nlohmann::json;

// Agent 1's clock: ahead of what the records of report_run.h say by `skew`, and gaining.
struct Bend {
  base::Duration skew{};
  std::int64_t gain_ppm = 0;

  base::Duration at(base::Instant coordinator) const {
    return skew + base::Duration{(coordinator.ns - kStart) / 1'000'000 * gain_ppm};
  }
  // A map that knows: right at every whole microsecond.
  ledger::ClockMap map() const {
    ledger::ClockMap out{base::Duration{kOffset[1]} - skew, base::Duration::micros(40)};
    for (const std::int64_t ms : {0, 2000}) {
      const base::Instant coordinator{kStart + ms * kMs};
      const base::Duration offset = base::Duration{kOffset[1]} - at(coordinator);
      out.knots.push_back({coordinator - offset, offset, base::Duration::micros(30)});
    }
    return out;
  }
};

// A record whose host's clock showed `by` more all along.
void shift(wire::Record& record, base::Duration by) {
  for (base::Instant* at :
       {&record.due_at, &record.issued_at, &record.sent_at, &record.first_byte_at,
        &record.first_token_at, &record.last_token_at, &record.done_at}) {
    if (at->is_set()) {
      *at = *at + by;
    }
  }
}

struct Told {
  Json summary;
  std::string events;
};

Told tell(const Bend& bend, const ledger::ClockMap& map) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  ledger.set_clock(1, map);
  RunFacts run = facts();
  std::vector<wire::Record> of[2];
  for (base::Seq seq = 0; seq < 40; ++seq) {
    const std::uint32_t agent = seq % 3 == 0 ? 1 : 0;
    const auto i = static_cast<std::int64_t>(seq);
    const std::int64_t issued = 101 + i * 40;
    wire::Record record =
        seq == 9
            ? failed_record(agent, 1, seq, issued, issued + 3, wire::Failure::kHttpStatus, "no")
            : ok_record(agent, 1, seq, issued, issued + 10 + i % 7, issued + 60 + 2 * (i % 11),
                        static_cast<std::int32_t>(1 + i % 9));
    if (agent == 1) {
      shift(record, bend.at(base::Instant{kStart + issued * kMs}));
    }
    of[agent].push_back(std::move(record));
  }
  accept(ledger, 0, 1, of[0]);
  accept(ledger, 1, 1, of[1]);
  run.phases[1].issued = 40;
  const auto report = make_report(run, ledger, {});
  EXPECT_TRUE(report);
  Told told;
  told.summary = Json::parse(result_summary_json(*report));
  const WordPrompts prompts;
  EXPECT_TRUE(write_events(run, ledger, prompts,
                           [&told](std::string_view text) { told.events.append(text); }));
  return told;
}

const Bend kBends[] = {{base::Duration{}, 0},
                       {base::Duration::seconds(3600), 0},
                       {base::Duration::seconds(-200), 0},
                       {base::Duration{}, 500},
                       {base::Duration::seconds(7), -500}};

TEST(ReportClocks, AShiftedOrDriftingClockThatIsKnownChangesNoNumberAndNoEvent) {
  Told plain = tell({}, Bend{}.map());
  EXPECT_EQ(plain.summary["n_samples_completed"], 40);
  for (const Bend& bend : kBends) {
    Told bent = tell(bend, bend.map());
    EXPECT_EQ(bent.events, plain.events) << bend.skew.ns << " " << bend.gain_ppm;
    for (Told* told : {&plain, &bent}) {
      told->summary["distributed"]["agents"][1].erase("clock");
    }
    EXPECT_EQ(bent.summary, plain.summary) << bend.skew.ns << " " << bend.gain_ppm;
  }
}

TEST(ReportClocks, AWrongMapTouchesNoDurationOfAQuery) {
  const Told plain = tell({}, Bend{}.map());
  bool moved = false;
  for (const Bend& bend : kBends) {
    const Told wrong = tell(bend, Bend{base::Duration::millis(900), 333}.map());
    for (const char* key : {"ttft", "tpot", "latency", "latency_succeeded", "itl", "ttft_from_sent",
                            "output_sequence_lengths", "input_sequence_lengths"}) {
      ASSERT_TRUE(plain.summary.contains(key)) << key;
      EXPECT_EQ(wrong.summary[key], plain.summary[key]) << key;
    }
    for (std::size_t agent = 0; agent < 2; ++agent) {
      for (const char* key :
           {"ttft_ns", "latency_ns", "issued_minus_due_ns", "sent_minus_issued_ns"}) {
        const Json& before = plain.summary["distributed"]["agents"][agent];
        EXPECT_EQ(wrong.summary["distributed"]["agents"][agent][key], before[key]) << key;
      }
    }
    moved = moved || wrong.events != plain.events;
  }
  EXPECT_TRUE(moved);  // the map was wrong indeed
}

}  // namespace
}  // namespace tutti::report
