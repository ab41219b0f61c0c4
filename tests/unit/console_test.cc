// The live view says what it was told: exact counts from the ledger, gauges per agent and frontend,
// rates over its window, and never a line wider than the screen.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "coordinator/console/live_view.h"

namespace tutti::console {
namespace {

using base::Duration;
using base::Instant;
using testing::HasSubstr;
using testing::Not;

wire::Progress progress(std::uint32_t in_flight, std::uint64_t tokens) {
  wire::Progress p;
  p.in_flight = in_flight;
  p.started = 60;
  p.output_tokens = tokens;
  p.frontends = {{in_flight / 2, 30, 20, 1}, {in_flight - in_flight / 2, 30, 20, 0}};
  return p;
}

LiveView started_view() {
  LiveView view({"a", "b"}, {"http://one:1", "http://two:2"});
  view.begin_phase("performance", 200, {16, 16}, Instant{1});
  return view;
}

TEST(LiveView, ShowsInFlightAgainstTargetInAllAndPerAgent) {
  LiveView view = started_view();
  view.note_progress(0, progress(16, 0), Instant{1} + Duration::seconds(1));
  view.note_progress(1, progress(15, 0), Instant{1} + Duration::seconds(1));
  const std::string text = view.block(Instant{1} + Duration::seconds(1), 200);
  EXPECT_THAT(text, HasSubstr("in flight 31 of 32"));
  EXPECT_THAT(text, HasSubstr("16/16"));
  EXPECT_THAT(text, HasSubstr("15/16"));
  EXPECT_THAT(text, HasSubstr("http://two:2"));
}

TEST(LiveView, RatesComeFromTheWindowAndTimeLeftFromThePace) {
  LiveView view = started_view();
  view.note_progress(0, progress(16, 100), Instant{1} + Duration::seconds(8));
  view.note_stored(100, 3);
  view.note_progress(0, progress(16, 500), Instant{1} + Duration::seconds(10));
  const std::string line = view.plain_line(Instant{1} + Duration::seconds(10));
  EXPECT_THAT(line, HasSubstr("done 100/200"));
  EXPECT_THAT(line, HasSubstr("failed 3"));
  EXPECT_THAT(line, HasSubstr("50.0 req/s"));
  EXPECT_THAT(line, HasSubstr("200 events/s"));
  EXPECT_THAT(line, HasSubstr("left 00:10"));
}

// Frontend two answers nothing well from a moment on; one has a failure among successes.
TEST(LiveView, AFrontendWithNothingButFailuresIsNamed) {
  LiveView view = started_view();
  wire::Progress p = progress(16, 0);
  const auto at = [](int s) { return Instant{1} + Duration::seconds(s); };
  view.note_progress(0, p, at(1));
  view.note_progress(0, p, at(2));
  EXPECT_THAT(view.block(at(2), 200), Not(HasSubstr("FAILING"))) << "nothing ended";
  p.frontends[0].done += 10;
  p.frontends[0].failed += 9;
  p.frontends[1].done += 4;
  p.frontends[1].failed += 4;
  view.note_progress(0, p, at(3));
  EXPECT_THAT(view.plain_line(at(3)), HasSubstr("FAILING: http://two:2"));
  EXPECT_THAT(view.plain_line(at(3)), Not(HasSubstr("FAILING: http://one:1")));
  EXPECT_THAT(view.block(at(3), 200), HasSubstr("FAILING"));
  p.frontends[1].done += 1;  // it is back
  view.note_progress(0, p, at(4));
  EXPECT_THAT(view.plain_line(at(4)), Not(HasSubstr("FAILING")));
}

TEST(LiveView, PercentilesAppearOnceThereAreValues) {
  LiveView view = started_view();
  EXPECT_THAT(view.plain_line(Instant{2}), HasSubstr("TTFT p50 - p99 -"));
  wire::Progress p = progress(1, 0);
  stats::LiveHistogram histogram;
  histogram.add(50'000'000);
  p.ttft.cells = histogram.cells();
  view.note_progress(0, p, Instant{1} + Duration::seconds(1));
  EXPECT_THAT(view.plain_line(Instant{2}), testing::ContainsRegex("TTFT p50 (49|50)"));
}

stats::LiveHistogram one_value() {
  stats::LiveHistogram histogram;
  histogram.add(50'000'000);
  return histogram;
}

TEST(LiveView, EventsAreCalledTokensOnlyOnceUsageCame) {
  LiveView view = started_view();
  const Instant now = Instant{1} + Duration::seconds(1);
  wire::Progress p = progress(1, 500);
  p.done = 10;
  p.ttft.cells = one_value().cells();
  view.note_progress(0, p, now);
  for (const std::string& text : {view.block(now, 200), view.plain_line(now)}) {
    EXPECT_THAT(text, HasSubstr(" events/s "));
    EXPECT_THAT(text, Not(HasSubstr("tok/s")));
    EXPECT_THAT(text, HasSubstr("TPOT p50 - p99 - ms"));
  }
  p.tpot.cells = one_value().cells();
  view.note_progress(0, p, now);
  for (const std::string& text : {view.block(now, 200), view.plain_line(now)}) {
    EXPECT_THAT(text, HasSubstr(" tok/s "));
    EXPECT_THAT(text, Not(HasSubstr("events/s")));
  }
}

TEST(LiveView, WithoutStreamsWhatIsCountedIsUsage) {
  LiveView view = started_view();
  wire::Progress p = progress(1, 500);
  view.note_progress(0, p, Instant{2});
  EXPECT_THAT(view.plain_line(Instant{2}), HasSubstr("events/s")) << "nothing ended yet";
  p.done = 10;
  p.failed = 10;
  view.note_progress(0, p, Instant{2});
  EXPECT_THAT(view.plain_line(Instant{2}), HasSubstr("events/s")) << "nothing succeeded yet";
  p.failed = 9;
  view.note_progress(0, p, Instant{2});
  EXPECT_THAT(view.plain_line(Instant{2}), HasSubstr("tok/s"));
}

TEST(LiveView, OnceAllAreIssuedItSaysSoThoughNoAgentHasSpoken) {
  LiveView view = started_view();
  EXPECT_FALSE(view.heard());
  view.note_issued(200);
  wire::Progress armed = progress(0, 0);
  armed.started = 0;
  view.note_progress(0, armed, Instant{1});
  EXPECT_FALSE(view.heard());
  LiveView idle = started_view();
  idle.note_progress(0, armed, Instant{1} + Duration::seconds(1));
  EXPECT_TRUE(idle.heard()) << "nothing was started for a whole second: that is news";
  view.note_progress(0, progress(16, 0), Instant{2});  // of before: 60 started
  EXPECT_TRUE(view.heard());
  EXPECT_THAT(view.plain_line(Instant{2}), HasSubstr("issued 200 done 0/200"));
  EXPECT_THAT(view.block(Instant{2}, 200), HasSubstr("issued 200  done 0/200"));
  view.begin_phase("next", 10, {4, 4}, Instant{3});
  EXPECT_FALSE(view.heard());
  EXPECT_THAT(view.plain_line(Instant{3}), HasSubstr("issued 0 done 0/10"));
  view.note_stored(1, 0);
  EXPECT_TRUE(view.heard());
}

TEST(LiveView, ANewPhaseStartsFromZero) {
  LiveView view = started_view();
  view.note_progress(0, progress(16, 100), Instant{1} + Duration::seconds(1));
  view.note_stored(50, 5);
  view.begin_phase("next", 10, {4, 4}, Instant{1} + Duration::seconds(2));
  EXPECT_THAT(view.plain_line(Instant{1} + Duration::seconds(2)),
              HasSubstr("done 0/10 failed 0 in flight 0/8"));
}

TEST(LiveView, ADrainedPhaseHasNothingInFlightWhateverTheLastGaugesSaid) {
  LiveView view = started_view();
  view.note_progress(0, progress(16, 0), Instant{1} + Duration::seconds(1));
  view.end_phase();
  EXPECT_THAT(view.block(Instant{2}, 200), HasSubstr("in flight 0 of 32"));
  EXPECT_THAT(view.block(Instant{2}, 200), Not(HasSubstr("16/16")));
}

wire::Progress unwell(Duration stall) {
  wire::Progress p = progress(16, 0);
  p.health.from = Instant{1};
  p.health.to = Instant{1} + Duration::seconds(1);
  p.health.turn_max = stall;
  return p;
}

TEST(LiveView, SaysWhichLimitOfClientHealthIsBrokenNowAndOnlyNow) {
  LiveView view = started_view();
  const Instant now = Instant{1} + Duration::seconds(1);
  view.note_progress(0, unwell(Duration::millis(100)), now);
  EXPECT_THAT(view.block(now, 200), Not(HasSubstr("client-bound")));
  view.note_progress(1, unwell(Duration::millis(1500)), now);
  EXPECT_THAT(view.block(now, 200),
              HasSubstr("client-bound now: agent b: longest turn of a worker's loop 1500 ms "
                        "(limit 100)"));
  EXPECT_THAT(view.plain_line(now), HasSubstr(" | client-bound now: agent b"));
  view.note_progress(1, progress(16, 0), now);  // closes no interval: says nothing new
  EXPECT_THAT(view.plain_line(now), HasSubstr("client-bound now"));
  view.note_progress(1, unwell(Duration::millis(1)), now);
  EXPECT_THAT(view.plain_line(now), Not(HasSubstr("client-bound")));
}

TEST(LiveView, TheLastLineRemembersWhatWasBrokenInThePhase) {
  LiveView view = started_view();
  view.note_progress(1, unwell(Duration::millis(1500)), Instant{2});
  view.note_progress(1, unwell(Duration::millis(1)), Instant{3});
  view.end_phase();
  EXPECT_THAT(view.plain_line(Instant{4}),
              HasSubstr("client limits broken in 1 intervals, last agent b: longest turn"));
  view.begin_phase("next", 10, {4, 4}, Instant{5});
  view.end_phase();
  EXPECT_THAT(view.plain_line(Instant{6}), Not(HasSubstr("client")));
}

TEST(LiveView, NoLineIsWiderThanTheScreenAndALostAgentIsMarked) {
  LiveView view = started_view();
  view.note_lost(1);
  EXPECT_THAT(view.block(Instant{2}, 200), HasSubstr("LOST"));
  const std::string narrow = view.block(Instant{2}, 40);
  std::size_t start = 0;
  while (start < narrow.size()) {
    const std::size_t end = narrow.find('\n', start);
    EXPECT_LE(end - start, 40U);
    start = end + 1;
  }
  EXPECT_THAT(narrow, Not(HasSubstr("LOST")));
}

}  // namespace
}  // namespace tutti::console
