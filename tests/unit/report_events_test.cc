// The lines of events.jsonl, byte for byte, and their order over agents with clocks of their own.

#include <gtest/gtest.h>

#include <map>

#include <nlohmann/json.hpp>

#include "common/wire/failure_type.h"
#include "coordinator/report/event_fold.h"
#include "coordinator/report/event_lines.h"
#include "coordinator/report/events.h"
#include "coordinator/report/report.h"
#include "tests/support/report_run.h"

namespace tutti::report {
namespace {

using base::Instant;
using namespace report_run;  // NOLINT: the tests' vocabulary

constexpr const char* kQuery = "c0af7b4b5dbc4f34d6e88f8b550f0e31";

ledger::Fact ok_fact(bool streamed) {
  ledger::Fact fact;
  fact.streamed = streamed;
  fact.finish_reason = wire::FinishReason::kStop;
  return fact;
}

std::string completed(const ledger::Fact& fact, const ledger::Texts& texts) {
  std::string out;
  EventLines(out).complete(kQuery, Instant{5}, fact, texts, 3);
  return out;
}

const std::string kCompleteHead =
    R"({"event_type":"sample.complete","timestamp_ns":5,)"
    R"("sample_uuid":"c0af7b4b5dbc4f34d6e88f8b550f0e31","conversation_id":"","turn":null,"data":)";

TEST(EventLines, SessionIssuedAndChunkForms) {
  std::string out;
  EventLines lines(out);
  lines.session("session.started", Instant{1000});
  Prompt prompt;
  prompt.kind = Prompt::Kind::kText;
  prompt.value = "tok\"1\n\xC3\xA9";
  lines.issued(kQuery, Instant{2000}, prompt);
  lines.chunk(kQuery, Instant{3000}, true);
  lines.chunk(kQuery, Instant{4000}, false);
  const std::string sample =
      R"("sample_uuid":"c0af7b4b5dbc4f34d6e88f8b550f0e31","conversation_id":"","turn":null,"data":)";
  const std::string expected =
      R"({"event_type":"session.started","timestamp_ns":1000,"sample_uuid":"",)"
      R"("conversation_id":"","turn":null,"data":null})"
      "\n"
      R"({"event_type":"sample.issued","timestamp_ns":2000,)" +
      sample + R"(["PromptData","tok\"1\né",null,null,null,null,null,null]})" + "\n" +
      R"({"event_type":"sample.recv_first","timestamp_ns":3000,)" + sample + "null}\n" +
      R"({"event_type":"sample.recv_non_first","timestamp_ns":4000,)" + sample + "null}\n";
  EXPECT_EQ(out, expected);
}

TEST(EventLines, MessagesWithToolsAndUnknownPrompts) {
  std::string out;
  EventLines lines(out);
  Prompt prompt;
  prompt.kind = Prompt::Kind::kMessages;
  prompt.value = R"([{"role":"user","content":"hi"}])";
  lines.issued("q", Instant{1}, prompt);
  EXPECT_NE(
      out.find(
          R"("data":["PromptData",null,null,[{"role":"user","content":"hi"}],null,null,null,null]})"),
      std::string::npos)
      << out;
  out.clear();
  prompt.tools = R"([{"type":"function"}])";
  lines.issued("q", Instant{1}, prompt);
  EXPECT_NE(out.find(R"("content":"hi"}],[{"type":"function"}],null,null,null]})"),
            std::string::npos)
      << out;
  out.clear();
  prompt.kind = Prompt::Kind::kTokenIds;
  prompt.value = "[1,2]";
  lines.issued("q", Instant{1}, prompt);
  EXPECT_NE(out.find(R"(["PromptData",null,[1,2],null,null,null,null,null])"), std::string::npos);
  out.clear();
  prompt.kind = Prompt::Kind::kMessages;
  prompt.value = "[\n{}\n]";  // pretty-printed: still one line
  lines.issued("q", Instant{1}, prompt);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  out.clear();
  lines.issued("q", Instant{1}, {});
  EXPECT_NE(out.find(R"(["PromptData",null,null,null,null,null,null,null])"), std::string::npos);
}

TEST(EventLines, StreamedOutputKeepsTheSplitAfterTheFirstChunk) {
  ledger::Texts texts;
  texts.output.has_content = true;
  texts.output.content_first = "Hel";
  texts.output.content_rest = "lo world";
  texts.output.has_rest = true;
  EXPECT_EQ(completed(ok_fact(true), texts),
            kCompleteHead +
                "[\"TextModelOutput\",[\"Hel\",\"lo world\"],null,null],"
                "\"finish_reason\":\"stop\",\"worker_id\":3}\n");
  texts.output.has_rest = false;
  texts.output.content_rest.clear();
  EXPECT_NE(completed(ok_fact(true), texts).find(R"(["TextModelOutput",["Hel"],null,null])"),
            std::string::npos);
  texts.output = {};
  EXPECT_NE(completed(ok_fact(true), texts).find(R"(["TextModelOutput",[],null,null])"),
            std::string::npos);
}

TEST(EventLines, ReasoningMakesTheOutputOneString) {
  ledger::Texts texts;
  texts.output.has_content = true;
  texts.output.has_reasoning = true;
  texts.output.has_rest = true;
  texts.output.reasoning_first = "a";
  texts.output.reasoning_rest = "b";
  texts.output.content_first = "c";
  texts.output.content_rest = "d";
  EXPECT_NE(completed(ok_fact(true), texts).find(R"(["TextModelOutput","cd",["a","b"],null])"),
            std::string::npos);
}

TEST(EventLines, WholeRepliesAreStringsAndToolCallsAreJson) {
  ledger::Texts texts;
  texts.output.has_content = true;
  texts.output.content_first = "all";
  texts.output.tool_calls = R"([{"type":"function","id":"c1"}])";
  EXPECT_NE(completed(ok_fact(false), texts)
                .find(R"(["TextModelOutput","all",null,[{"type":"function","id":"c1"}]])"),
            std::string::npos);
  texts.output.has_reasoning = true;
  texts.output.reasoning_first = "why";
  texts.output.tool_calls.clear();
  EXPECT_NE(completed(ok_fact(false), texts).find(R"(["TextModelOutput","all","why",null])"),
            std::string::npos);
}

TEST(EventLines, BrokenTextsCannotBreakALine) {
  ledger::Texts texts;
  texts.output.has_content = true;
  texts.output.content_first = "\xFFok\x01\n";
  texts.output.tool_calls = "[{broken";
  ledger::Fact fact = ok_fact(true);
  fact.finish_reason = wire::FinishReason::kOther;
  texts.finish_text = "odd\"one";
  const std::string line = completed(fact, texts);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["data"][1][0], "\xEF\xBF\xBDok\x01\n");
  EXPECT_EQ(json["data"][3], "[{broken");
  EXPECT_EQ(json["finish_reason"], "odd\"one");
}

TEST(EventLines, FailuresHaveAnErrorLineAndNullData) {
  ledger::Fact fact;
  fact.outcome = wire::Outcome::kFailed;
  fact.failure = wire::Failure::kHttpStatus;
  fact.http_status = 503;
  ledger::Texts texts;
  texts.error_message = "overloaded";
  std::string out;
  EventLines(out).error(kQuery, Instant{5}, fact, texts);
  EXPECT_NE(out.find(R"("data":["ErrorData","error","HTTP 503: overloaded"]})"), std::string::npos);
  EXPECT_EQ(completed(fact, texts), kCompleteHead + "null,\"worker_id\":3}\n");
  texts.error_message = "HTTP 503: overloaded";  // not said twice
  EXPECT_EQ(error_text(fact, texts), "HTTP 503: overloaded");
  EXPECT_EQ(wire::failure_type(wire::Failure::kConnect, "Connection refused"),
            "ConnectionRefusedError");
  EXPECT_EQ(wire::failure_type(wire::Failure::kConnect, "no route"), "OSError");
  EXPECT_EQ(wire::failure_type(wire::Failure::kReset, ""), "ConnectionResetError");
}

struct Line {
  std::string type;
  std::int64_t at = 0;
  std::string query;
};

std::vector<Line> events_of(const RunFacts& facts, const ledger::Ledger& ledger,
                            std::string* raw = nullptr) {
  std::string all;
  const auto written =
      write_events(facts, ledger, WordPrompts(), [&](std::string_view lines) { all += lines; });
  EXPECT_TRUE(written.has_value());
  std::vector<Line> out;
  std::istringstream in(all);
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    out.push_back({json["event_type"], json["timestamp_ns"], json["sample_uuid"]});
  }
  if (raw != nullptr) {
    *raw = all;
  }
  return out;
}

TEST(WriteEvents, PerQueryOrderHoldsAndLinesAreSortedByStamp) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_mixed(ledger, run);
  const std::vector<Line> lines = events_of(run, ledger);
  EXPECT_EQ(lines.front().type, "session.started");
  EXPECT_EQ(lines.back().type, "session.ended");
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end(),
                             [](const Line& a, const Line& b) { return a.at < b.at; }));
  std::map<std::string, std::string> story;
  for (const Line& line : lines) {
    const std::string name = line.type.substr(line.type.find('.') + 1);
    story[line.query] +=
        name == "generic" ? "E" : name.substr(0, 1) + (name == "recv_first" ? "f" : "");
  }
  std::map<std::string, int> kinds;
  for (const auto& [query, text] : story) {
    ++kinds[query.empty() ? "session" : text];
  }
  EXPECT_EQ(kinds["irfc"], 37);
  EXPECT_EQ(kinds["iEc"], 3);
  EXPECT_EQ(kinds["irf"], 2);  // warm-up: issued and first chunk, no completion
  EXPECT_EQ(kinds.size(), 4U);
}

TEST(WriteEvents, ClockErrorCannotMoveAQueryOutOfItsPhase) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  run.phases.push_back(
      {"math", base::PhaseKind::kAccuracy, run.phases[1].stop_at, Instant{kStart + 1950 * kMs}, 1});
  run.phases[1].issued = 1;
  accept_warmup(ledger);
  // By agent 1's clock the measured query went out before its phase began, and the accuracy query
  // before the tracking stopped.
  accept(ledger, 1, 2,
         {ok_record(1, 1, 0, 99, 120, 130, 2), ok_record(1, 2, 0, 1899, 1910, 1920, 2)});
  std::string raw;
  const std::vector<Line> lines = events_of(run, ledger, &raw);
  const auto index = [&](const std::string& type, const std::string& query) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].type == type && lines[i].query == query) {
        return i;
      }
    }
    ADD_FAILURE() << type << " of " << query << " is missing";
    return lines.size();
  };
  const std::string measured = base::query_id(run.run, 1, 0);
  const std::string accuracy = base::query_id(run.run, 2, 0);
  EXPECT_LT(index("session.start_performance_tracking", ""), index("sample.issued", measured));
  EXPECT_LT(index("session.stop_performance_tracking", ""), index("sample.issued", accuracy));
  EXPECT_EQ(lines[index("sample.issued", measured)].at, kStart + 99 * kMs);  // stamp as measured
}

TEST(WriteEvents, EqualAndInvertedStampsKeepTheOrderOfAQuery) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  run.phases[1].issued = 2;
  accept_warmup(ledger);
  wire::Record equal = ok_record(0, 1, 0, 200, 200, 200, 2);
  wire::Record inverted = ok_record(0, 1, 1, 200, 150, 140, 2);
  accept(ledger, 0, 2, {equal, inverted});
  const std::vector<Line> lines = events_of(run, ledger);
  std::map<std::string, std::string> story;
  for (const Line& line : lines) {
    story[line.query] += line.type + " ";
  }
  for (base::Seq seq = 0; seq < 2; ++seq) {
    EXPECT_EQ(story[base::query_id(run.run, 1, seq)],
              "sample.issued sample.recv_first sample.complete ");
  }
}

TEST(WriteEvents, ChunksAreThereOnlyWhenAskedFor) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  run.phases[1].issued = 1;
  accept_warmup(ledger);
  wire::Record record = ok_record(0, 1, 0, 200, 210, 300, 4);
  for (const std::int64_t ms : {220, 230, 290}) {
    record.chunk_at.push_back(Instant{kStart + ms * kMs - kOffset[0]});
  }
  accept(ledger, 0, 2, {record});
  const auto count = [&](const std::string& type) {
    const std::vector<Line> lines = events_of(run, ledger);
    return std::count_if(lines.begin(), lines.end(),
                         [&](const Line& line) { return line.type == type; });
  };
  EXPECT_EQ(count("sample.recv_non_first"), 0);
  run.config.stream_all_chunks = true;
  EXPECT_EQ(count("sample.recv_non_first"), 3);
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->snapshot.chunk_delta.count, 3U);
  EXPECT_EQ(stats::to_double(report->snapshot.chunk_delta.max), 60.0 * kMs);
}

TEST(WriteEvents, AFailedWarmUpHasItsErrorAndNoCompletion) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept(ledger, 0, 1, {failed_record(0, 0, 0, 20, 30, wire::Failure::kReset, "gone")});
  const std::vector<Line> lines = events_of(run, ledger);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const Line& line) { return line.type == "error.generic"; }),
            1);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const Line& line) { return line.type == "sample.complete"; }),
            0);
}

TEST(WriteEvents, WorkerNumbersAreGlobal) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  run.phases[1].issued = 1;
  wire::Record record = ok_record(1, 1, 0, 200, 210, 300, 4);
  record.worker = 1;
  accept(ledger, 1, 1, {record});
  std::string raw;
  events_of(run, ledger, &raw);
  EXPECT_NE(raw.find("\"worker_id\":3}"), std::string::npos);  // after agent 0's two workers
}

TEST(WriteEvents, AnInterruptedRunSaysSoBeforeItsEnd) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  run.state = RunState::kInterrupted;
  run.phases[1].stop_at = {};
  const std::vector<Line> lines = events_of(run, ledger);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines[lines.size() - 3].type, "session.stop_performance_tracking");
  EXPECT_EQ(lines[lines.size() - 2].type, "session.interrupted");
  EXPECT_EQ(lines[lines.size() - 1].type, "session.ended");
}

void expect_equal(const stats::SeriesStat& a, const stats::SeriesStat& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.total, b.total);
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_EQ(a.percentiles, b.percentiles);
}

// The two ways to the snapshot agree: straight from the ledger, and through the event file.
TEST(WriteEvents, TheEventFileFoldsToTheLedgersOwnSnapshot) {
  TempFolder folder;
  ledger::Ledger ledger = open_ledger(folder);
  RunFacts run = facts();
  accept_mixed(ledger, run);
  std::string raw;
  events_of(run, ledger, &raw);
  std::ofstream(folder / "events.jsonl") << raw;
  TokenCounter counter;
  counter.text = count_words;
  const auto folded = fold_events(folder / "events.jsonl", counter, {});
  ASSERT_TRUE(folded) << folded.error().message;
  const auto report = make_report(run, ledger, {});
  ASSERT_TRUE(report);
  const Snapshot& own = report->snapshot;
  EXPECT_EQ(folded->counters.total_issued, own.counters.total_issued);
  EXPECT_EQ(folded->counters.total_completed, own.counters.total_completed);
  EXPECT_EQ(folded->counters.total_failed, own.counters.total_failed);
  EXPECT_EQ(folded->counters.tracked_issued, 40);
  EXPECT_EQ(own.counters.tracked_issued, 40);
  EXPECT_EQ(folded->counters.tracked_completed, own.counters.tracked_completed);
  EXPECT_EQ(folded->counters.tracked_failed, 3);
  EXPECT_EQ(own.counters.tracked_failed, 3);
  EXPECT_EQ(folded->counters.finish_stop, own.counters.finish_stop);
  EXPECT_EQ(folded->counters.tracked_duration_ns, own.counters.tracked_duration_ns);
  EXPECT_EQ(folded->counters.legacy_window_ns, own.counters.legacy_window_ns);
  EXPECT_EQ(folded->counters.total_duration_ns, own.counters.total_duration_ns);
  expect_equal(folded->latency, own.latency);
  expect_equal(folded->ttft, own.ttft);
  expect_equal(folded->osl, own.osl);
  expect_equal(folded->tpot, own.tpot);
  EXPECT_EQ(own.tpot.count, 32U);  // 37 successes, 5 of them of one token
}

}  // namespace
}  // namespace tutti::report
