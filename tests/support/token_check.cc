// tutti-token-check: counts the cases of tests/conformance/tokens_expected.py with our counter and
// compares. Prints what differs; exit code 1 when anything does. Usage: tutti-token-check
// MODEL_FOLDER CASES

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "common/model/token_counter.h"
#include "common/text/json_read.h"
#include "tests/support/token_cases.h"

namespace tutti::test {
namespace {

int run(const char* folder, const char* cases) {
  const auto files = model::read_model_files(folder);
  const auto counter = files ? model::TokenCounter::open(*files) : tl::unexpected(files.error());
  if (!counter) {
    fmt::print(stderr, "{}\n", counter.error().message);
    return 1;
  }
  std::ifstream in(cases);
  std::size_t all = 0;
  std::size_t wrong = 0;
  for (std::string line; std::getline(in, line); ++all) {
    const auto one = text::read_json(line);
    const std::string problem = one ? check_token_case(*counter, *one) : one.error().to_text();
    if (!problem.empty() && ++wrong <= 20) {
      fmt::print(stderr, "{}\n  {}\n", problem, line.substr(0, 600));
    }
  }
  fmt::print("{}: {} of {} cases agree\n", folder, all - wrong, all);
  return all > 0 && wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tutti-token-check MODEL_FOLDER CASES\n");
    return 2;
  }
  return tutti::test::run(argv[1], argv[2]);
}
