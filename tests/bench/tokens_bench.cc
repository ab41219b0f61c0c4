// tutti-bench-tokens: tokens that our counter counts per second of one core, over texts of a file,
// one JSON string a line. Usage: tutti-bench-tokens MODEL_FOLDER TEXTS PASSES

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "common/model/token_counter.h"
#include "common/text/json_read.h"

namespace tutti::bench {
namespace {

std::vector<std::string> read_texts(const char* path) {
  std::vector<std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (const auto text = text::read_json(line); text && text->is_string()) {
      out.push_back(text->as_string());
    }
  }
  return out;
}

// Of this process, over all its threads: there is one that works.
double cpu_s() { return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC); }

// Ends the program when a text cannot be counted.
std::uint64_t count_all(const model::TokenCounter& counter, const std::vector<std::string>& texts) {
  std::uint64_t sum = 0;
  for (const std::string& text : texts) {
    const auto count = counter.text(text);
    if (!count) {
      fmt::print(stderr, "{}\n", count.error().message);
      std::exit(1);
    }
    sum += *count;
  }
  return sum;
}

int run(const char* folder, const char* file, int passes) {
  const double before_load = cpu_s();
  const auto files = model::read_model_files(folder);
  const auto counter = files ? model::TokenCounter::open(*files) : tl::unexpected(files.error());
  if (!counter) {
    fmt::print(stderr, "{}\n", counter.error().message);
    return 1;
  }
  const double load_s = cpu_s() - before_load;
  const std::vector<std::string> texts = read_texts(file);
  const std::uint64_t tokens = count_all(*counter, texts);  // fills the caches, as a run does soon
  const double start = cpu_s();
  for (int i = 0; i < passes; ++i) {
    count_all(*counter, texts);
  }
  const double each_s = (cpu_s() - start) / passes;
  fmt::print("{} {:.0f} {:.2f}\n", tokens, static_cast<double>(tokens) / each_s, load_s);
  return tokens > 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::bench

int main(int argc, char** argv) {
  const int passes = argc == 4 ? std::atoi(argv[3]) : 0;
  if (passes < 1) {
    fmt::print(stderr, "usage: tutti-bench-tokens MODEL_FOLDER TEXTS PASSES\n");
    return 2;
  }
  return tutti::bench::run(argv[1], argv[2], passes);
}
