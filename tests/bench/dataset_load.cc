// Loads a data set once, as the coordinator does, and prints rows, seconds, rows a second and the
// peak of memory. `--write ROWS FILE` writes the JSONL to load.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "common/base/random.h"
#include "common/data/dataset.h"

namespace {

int write(std::uint64_t rows, const char* path) {
  tutti::base::Mt19937 random(1);
  std::ofstream out(path);
  for (std::uint64_t i = 0; i < rows; ++i) {
    out << "{\"prompt\":\"" << i;
    for (int word = 0; word < 60; ++word) {
      out << ' ' << 100'000 + random.below(900'000);
    }
    out << "\",\"answer\":\"" << i << "\",\"n\":1}\n";
  }
  return out.flush() ? 0 : 1;
}

int load(const char* path) {
  const auto began = std::chrono::steady_clock::now();
  tutti::data::DatasetRequest request;
  request.path = path;
  const auto loaded = tutti::data::load_dataset(request);
  if (!loaded) {
    fmt::print(stderr, "{}: {}\n", loaded.error()[0].where, loaded.error()[0].remedy);
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{}: {} rows, {:.2f} s, {:.0f} rows/s, peak {} MiB\n", path, loaded->rows.size(),
             took.count(), static_cast<double>(loaded->rows.size()) / took.count(),
             usage.ru_maxrss / 1024);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--write") {
    return write(std::strtoull(argv[2], nullptr, 10), argv[3]);
  }
  if (argc == 2) {
    return load(argv[1]);
  }
  fmt::print(stderr, "usage: tutti-bench-dataset FILE | --write ROWS FILE\n");
  return 1;
}
