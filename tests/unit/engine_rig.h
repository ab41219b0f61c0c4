#pragma once

// EngineRig: an engine over a small body set, driven from the test's thread: issue, pump until
// something holds, look at the records. Row i's body is {"row":i,"prompt":"p"} with the splice
// before the p.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "agent/drive/engine.h"
#include "tests/support/scripted_server.h"

namespace tutti::drive {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

inline std::string row_body(std::uint64_t i, const std::string& salt = "") {
  return fmt::format(R"({{"row":{},"prompt":"{}p"}})", i, salt);
}

class EngineRig {
 public:
  static constexpr std::uint64_t kRows = 100;

  explicit EngineRig(std::vector<std::string> urls, bool streaming = true) {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-engine-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    auto writer = data::BodySetWriter::create(folder_ + "/bodies");
    for (std::uint64_t i = 0; i < kRows; ++i) {
      const std::string body = row_body(i);
      // The last row has no place for a salt.
      const auto splice = static_cast<std::int32_t>(body.size() - 3);
      EXPECT_TRUE(writer->add(body, i + 1 == kRows ? -1 : splice));
    }
    EXPECT_TRUE(writer->finish());
    bodies_ = std::move(*data::BodySet::open(folder_ + "/bodies"));
    config.target.urls = std::move(urls);
    config.target.streaming = streaming;
    config.target.headers = {{"Authorization", "Bearer secret-key"},
                             {"Content-Type", "application/json"},
                             {"Accept", "text/event-stream"}};
    config.bodies = &bodies_;
    // engine_test runs once for each way onto the wire.
    const char* way = std::getenv("TUTTI_TEST_WAY");
    if (way != nullptr && std::string(way) == "multi") {
      config.target.way = base::Way::kMulti;
    }
    config.queue_max = 4096;
    config.record_ring = 1024;
  }
  ~EngineRig() {
    engine_.reset();
    std::filesystem::remove_all(folder_);
  }
  EngineRig(const EngineRig&) = delete;
  EngineRig& operator=(const EngineRig&) = delete;

  Engine& engine() {
    if (!engine_) {
      auto started = Engine::start(config, clock);
      EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().message);
      engine_ = std::move(*started);
    }
    return *engine_;
  }

  static std::vector<base::IssueCommand> commands(base::Seq from, std::size_t count) {
    std::vector<base::IssueCommand> made(count);
    for (std::size_t i = 0; i < count; ++i) {
      made[i].seq = from + i;
      made[i].sample = static_cast<base::SampleIndex>((from + i) % (kRows - 1));
    }
    return made;
  }

  void arm(base::Pacing pacing, std::uint32_t slots, std::uint32_t phase = 0, Duration ahead = {}) {
    Engine& running = engine();  // takes its time, which must not count as lag
    start_at = clock.mono() + ahead;
    running.arm(phase, pacing, slots, start_at);
  }
  void issue(std::size_t count, base::Seq from = 0, std::uint32_t phase = 0) {
    const auto made = commands(from, count);
    ASSERT_EQ(engine().issue(phase, made), count);
  }

  void poll_once() {
    std::vector<EngineEvent> events;
    engine().poll(events);
    for (auto& event : events) {
      if (auto* batch = std::get_if<EngineRecords>(&event)) {
        for (auto& record : batch->records) {
          records.push_back(std::move(record));
        }
      } else if (auto* r = std::get_if<EngineRecalled>(&event)) {
        recalled.push_back(std::move(*r));
      } else if (auto* a = std::get_if<EngineAborted>(&event)) {
        aborted.push_back(std::move(*a));
      } else if (auto* w = std::get_if<EngineWarmed>(&event)) {
        warmed = std::move(*w);
      }
    }
  }
  // Waits on the engine's own bell, so a missing wake-up shows as a time-out.
  bool pump(const std::function<bool()>& done, std::chrono::milliseconds limit = 20s) {
    const auto until = std::chrono::steady_clock::now() + limit;
    poll_once();
    while (!done()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        return false;
      }
      pollfd bell{engine().wake_fd(), POLLIN, 0};
      if (::poll(&bell, 1, static_cast<int>(left.count())) == 0) {
        return false;  // not rung for: no excuse that a last look would find it
      }
      poll_once();
    }
    return true;
  }
  // For what the engine does not ring for: looks every few milliseconds, without polling the
  // engine.
  static bool wait(const std::function<bool()>& done, std::chrono::milliseconds limit = 20s) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(2ms);
    }
    return done();
  }
  bool pump_records(std::size_t count) {
    return pump([&] { return records.size() >= count; });
  }
  bool drain(std::uint32_t phase = 0) {
    return pump([&] { return engine().outstanding(phase) == 0; });
  }
  // One command, one record.
  wire::Record one() {
    arm(base::Pacing::kClosedLoop, 1);
    issue(1);
    EXPECT_TRUE(pump_records(1));
    return records.empty() ? wire::Record{} : records.back();
  }
  std::vector<base::Seq> seqs() const {
    std::vector<base::Seq> found;
    for (const auto& record : records) {
      found.push_back(record.seq);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const base::SystemClock clock{};
  EngineConfig config{};
  Instant start_at{};
  std::vector<wire::Record> records;
  std::vector<EngineRecalled> recalled;
  std::vector<EngineAborted> aborted;
  std::optional<EngineWarmed> warmed;

 private:
  std::string folder_;
  data::BodySet bodies_;
  std::unique_ptr<Engine> engine_;
};

inline std::vector<base::Seq> first_seqs(std::size_t count) {
  std::vector<base::Seq> seqs(count);
  for (std::size_t i = 0; i < count; ++i) {
    seqs[i] = i;
  }
  return seqs;
}

inline support::ScriptedServer::Answer streams(std::vector<std::string> words,
                                               std::chrono::microseconds gap = {}) {
  return [words = std::move(words), gap](const support::ScriptedRequest&) {
    return support::stream_script(words, gap);
  };
}

}  // namespace tutti::drive
