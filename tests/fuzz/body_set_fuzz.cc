// A body set is taken only when each of its rows can be read safely. The fuzzer cannot guess a
// hash, so the second try puts the right one in: then the checks behind the hash are on their own.

#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/data/body_set.h"

namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kHashAt = 40;

void use(std::string_view file) {
  const auto set = tutti::data::BodySet::over(file);
  if (!set) {
    return;
  }
  for (std::uint64_t i = 0; i < set->rows(); ++i) {
    const tutti::data::BodyRow row = set->row(i);
    std::size_t sum = 0;
    for (const char c : row.body) {
      sum += static_cast<unsigned char>(c);
    }
    const bool spliced = row.splice >= 0;
    if (row.body.empty() || sum > row.body.size() * 255 ||
        (spliced && row.body.at(static_cast<std::size_t>(row.splice) - 1) != '"')) {
      std::abort();
    }
  }
}

// Hash of everything behind the header but the padding, as the file form says.
void put_hash(std::vector<char>& file) {
  std::uint64_t index_offset = 0;
  std::uint64_t body_bytes = 0;
  std::memcpy(&index_offset, file.data() + 24, 8);
  std::memcpy(&body_bytes, file.data() + 32, 8);
  if (index_offset > file.size() || body_bytes > file.size() - kHeaderBytes) {
    return;
  }
  std::vector<char> content(file.begin() + kHeaderBytes,
                            file.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + body_bytes));
  content.insert(content.end(), file.begin() + static_cast<std::ptrdiff_t>(index_offset),
                 file.end());
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  std::memcpy(file.data() + kHashAt, &hash.high64, 8);
  std::memcpy(file.data() + kHashAt + 8, &hash.low64, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<char> file(data, data + size);
  use(std::string_view(file.data(), file.size()));
  if (size >= kHeaderBytes) {
    put_hash(file);
    use(std::string_view(file.data(), file.size()));
  }
  return 0;
}
