// The mock's request reader and its JSON reader, on any bytes cut anywhere: the first byte of the
// input chooses the cut. Whatever the cut, the same requests come out; bodies go on to the planner.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/mock_llm/http_request.h"
#include "tests/mock_llm/options.h"
#include "tests/mock_llm/planner.h"
#include "tests/mock_llm/reply.h"

namespace {

using tutti::mock_llm::Method;
using tutti::mock_llm::RequestLimits;
using tutti::mock_llm::RequestReader;
using tutti::mock_llm::Route;

constexpr RequestLimits kLimits{2048, 4096};

struct Outcome {
  std::vector<std::string> bodies;
  int refused = 0;
  bool operator==(const Outcome& other) const {
    return bodies == other.bodies && refused == other.refused;
  }
};

void answer(const RequestReader& reader) {
  static const tutti::mock_llm::MockOptions kOptions =
      tutti::mock_llm::read_options({"--text", "echo", "--usage", "continuous"}).options;
  static tutti::mock_llm::Planner planner(kOptions);
  static tutti::mock_llm::ReplyWriter writer(kOptions, planner.models());
  if (reader.head().route != Route::kChat && reader.head().route != Route::kCompletions) {
    return;
  }
  const auto plan = planner.plan(reader.head(), reader.body(), 1);
  if (!plan) {
    return;
  }
  std::string out;
  writer.document(out, *plan);
  writer.spoil_document(out, *plan);
  if (plan->tokens > 0) {
    writer.content_event(out, *plan, writer.piece(*plan, 0, 1), 1);
  }
}

Outcome read_all(std::string_view bytes, std::size_t piece, bool answers) {
  Outcome outcome;
  RequestReader reader(kLimits);
  while (!bytes.empty()) {
    // Each piece in memory of its own, so that a read beyond it is seen.
    const std::string part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    std::string_view rest = part;
    while (!rest.empty()) {
      const std::size_t taken = reader.feed(rest);
      if (taken > rest.size()) {
        std::abort();
      }
      rest.remove_prefix(taken);
      if (reader.state() == RequestReader::State::kComplete) {
        if (reader.body().size() > kLimits.body_bytes_max) {
          std::abort();
        }
        outcome.bodies.emplace_back(reader.body());
        if (answers) {
          answer(reader);
        }
        reader.reset();
      } else if (reader.state() == RequestReader::State::kRefused) {
        outcome.refused = reader.refusal().status;
        return outcome;
      } else if (taken == 0) {
        std::abort();  // would spin
      }
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t piece = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!(read_all(bytes, bytes.size(), true) == read_all(bytes, piece, false))) {
    std::abort();
  }
  return 0;
}
