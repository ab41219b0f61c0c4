// sim_seeds: many seeds of the simulator, as many as there is time for. One process plays one range
// on one core; run several with ranges of their own, and go on later with the seed it names.
//   sim_seeds [--conversations] FIRST COUNT [SECONDS]
// The hash of all traces tells whether another state of the code played the very same worlds.
// --conversations: the same worlds play conversations. SECONDS: stop after so long (default: no
// limit).
// Exit codes: 0 every promise held, 1 usage, 4 a seed broke one: it is explained, with its replay.

#include <fmt/format.h>
#include <malloc.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "tests/sim/simulate.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kNoLimit = 1'000'000'000;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// 0 when it is no number.
std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : 0;
}

int play(bool talks, std::uint64_t first, std::uint64_t count, std::uint64_t seconds) {
  constexpr double kSayEvery = 30;
  const auto began = Clock::now();
  double said = 0;
  std::uint64_t done = 0;
  std::uint64_t happened = 0;
  std::uint64_t hash = 0;
  for (; done < count && seconds_since(began) < static_cast<double>(seconds); ++done) {
    const std::uint64_t seed = first + done;
    const tutti::sim::Report report = tutti::sim::simulate(
        talks ? tutti::sim::draw_conversations(seed) : tutti::sim::draw_scenario(seed));
    happened += report.happened;
    hash = (hash ^ report.hash) * 0x100000001B3ULL;
    if (!report.complaints.empty()) {
      fmt::print("{}\nseed {} breaks a promise, {} before it held; replay: sim_seeds {}{} 1\n",
                 tutti::sim::explain(report), seed, done, talks ? "--conversations " : "", seed);
      return 4;
    }
    if (const double took = seconds_since(began); took - said >= kSayEvery) {
      said = took;
      fmt::print("{} seeds, {:.0f} a second\n", done + 1, static_cast<double>(done + 1) / took);
      std::fflush(stdout);
    }
  }
  const double took = seconds_since(began);
  fmt::print(
      "seeds {} to {} hold: {} in {:.1f} s, {:.0f} a second, {} happenings, hash {:016x}; "
      "next: {}\n",
      first, first + done - 1, done, took, static_cast<double>(done) / took, happened, hash,
      first + done);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool talks = argc > 1 && std::string_view(argv[1]) == "--conversations";
  argv += talks ? 1 : 0;
  argc -= talks ? 1 : 0;
  const std::uint64_t first = argc > 2 ? number(argv[1]) : 0;
  const std::uint64_t count = argc > 2 ? number(argv[2]) : 0;
  const std::uint64_t seconds = argc > 3 ? number(argv[3]) : kNoLimit;
  if (first == 0 || count == 0 || seconds == 0 || argc > 4) {
    fmt::print(stderr, "usage: sim_seeds [--conversations] FIRST COUNT [SECONDS], all above 0\n");
    return 1;
  }
  // Worlds come and go by the hundred a second: memory given back would be fetched again at once.
  constexpr int kKeptBytes = 1 << 30;
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  return play(talks, first, count, seconds);
}
