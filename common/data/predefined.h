#pragma once

// The reference client's predefined data sets, by name (`id` or `id::preset`): which file of its
// cache folder holds one, how its columns are named, which rows are taken. Only `gpqa` is made here
// where its file is not there, of its source (gpqa.h); of the others an error says where the file
// comes from (`random` is made by others: random_prompts). Presets whose prompt texts belong to the
// reference are refused by name. Pure but for files, and the hub that gpqa is fetched from.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/result.h"
#include "common/text/json_read.h"

namespace tutti::data {

inline constexpr std::string_view kCacheFolder = "dataset_cache";  // in the current folder
inline constexpr std::string_view kRandomSet = "random";           // the one that is no file

// What `max_samples` and `seed` choose: Random(seed).sample(range(rows), count) of CPython.
struct RowPick {
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
};

struct CachedSet {
  std::string path;
  std::optional<std::vector<std::pair<std::string, std::string>>> parser;  // of the preset
  std::optional<RowPick> pick;
  std::vector<std::string> notes;
};

// True when the part of `name` before `::` is a predefined id.
bool is_predefined(std::string_view name);
// "aime25, bfcl_v4, …", for messages.
std::string predefined_ids();

// `params`: generate_params, null or an object. `name` is predefined, and not kRandomSet.
base::Result<CachedSet> find_predefined(std::string_view name, const text::JsonValue& params,
                                        const std::string& cache = std::string(kCacheFolder));

// Indices in the order CPython's sample gives them; all of them in order when count ≥ rows.
std::vector<std::uint64_t> picked_rows(const RowPick& pick, std::uint64_t rows);
// CPython's random.sample(range(rows), count) as the next draws of `random`; count ≤ rows.
std::vector<std::uint64_t> sampled(base::Mt19937& random, std::uint64_t rows, std::uint64_t count);

}  // namespace tutti::data
