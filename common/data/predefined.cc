#include "common/data/predefined.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <unordered_set>

#include "common/base/check.h"
#include "common/data/gpqa.h"

namespace tutti::data {
namespace {

using base::ExitCode;
using text::JsonValue;

struct Predefined {
  std::string_view id;
  // Under the cache folder; {variant} and the like are parameters. Ends in `/`: the one file there.
  std::string_view file;
  std::string_view source;  // for whoever has to get it
  std::vector<std::pair<std::string_view, std::string_view>> defaults = {};  // parameters in `file`
  bool sampled = false;          // takes seed and max_samples
  std::string_view texts = {};   // the preset whose prompt text is not in our hands
  std::string_view preset = {};  // the preset that only names columns
  std::vector<std::pair<std::string, std::string>> renames = {};  // of `preset`
  bool made = false;  // here, of its source, where the file is not there: gpqa
};

const std::vector<Predefined>& all() {
  static const std::vector<Predefined> kAll{
      {"aime25",
       "aime25/aime25.parquet",
       "Hugging Face opencompass/AIME2025, AIME2025-I and -II, split test",
       {},
       true,
       "gptoss"},
      {"bfcl_v4",
       "bfcl_v4/bfcl_v4_single_turn.parquet",
       "MLCommons' storage (mlcommons-storage.org)",
       {},
       false,
       "",
       "function_calling"},
      {"cnn_dailymail",
       "cnn_dailymail/cnn_dailymail.parquet",
       "Hugging Face abisee/cnn_dailymail 3.0.0, split validation",
       {},
       true,
       "llama3_8b"},
      {"gpqa",
       "gpqa/{variant}/gpqa_{variant}.parquet",
       "Hugging Face Idavidrein/gpqa (asks for a login), split train",
       {{"variant", "diamond"}},
       true,
       "gptoss",
       "",
       {},
       true},
      {"legacy_mlperf_deepseek_r1", "legacy_mlperf_deepseek_r1/deepseek_r1_eval.parquet",
       "the file MLCommons prepared for DeepSeek-R1"},
      {"livecodebench",
       "livecodebench/{variant}/",
       "LiveCodeBench",
       {{"variant", "release_v6"}},
       false,
       "gptoss"},
      {"open_orca",
       "open_orca/{variant}/open_orca_gpt4_tokenized_llama.sampled_24576.jsonl",
       "MLCommons' storage, 24,576 rows of OpenOrca",
       {{"variant", "mlperf-inference"}},
       false,
       "",
       "llama2_70b",
       {{"prompt", "question"}, {"system", "system_prompt"}}},
      {"shopify_product_catalogue",
       "shopify_product_catalogue/{split}/",
       "Hugging Face Shopify/product-catalogue",
       {{"split", "train+test"}},
       false,
       "q3vl"},
      {"shopify_product_catalogue_8k",
       "shopify_product_catalogue_8k/{split}/",
       "Hugging Face nvidia/Shopify-product-catalogue-8k",
       {{"split", "train"}},
       false,
       "q3vl"},
      {"swe_bench",
       "swe_bench/{subset}/{split}/",
       "Hugging Face princeton-nlp/SWE-bench_Verified",
       {{"subset", "verified"}, {"split", "test"}}},
      {kRandomSet, "", ""},
      {"agentic_inference_conversations", "", ""},
  };
  return kAll;
}

// `id` and `preset` of a name; "" where there is no preset.
std::pair<std::string_view, std::string_view> parts(std::string_view name) {
  const std::size_t colons = name.find("::");
  return colons == std::string_view::npos
             ? std::pair(name, std::string_view())
             : std::pair(name.substr(0, colons), name.substr(colons + 2));
}

const Predefined* named(std::string_view id) {
  const auto found = std::find_if(all().begin(), all().end(),
                                  [id](const Predefined& known) { return known.id == id; });
  return found == all().end() ? nullptr : &*found;
}

template <class... Args>
tl::unexpected<base::Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return base::fail(ExitCode::kInput, fmt::format(text, std::forward<Args>(args)...));
}

// A list of splits is joined as the cache's folders are.
std::string text_of(const JsonValue& value) {
  if (value.is_string()) {
    return value.as_string();
  }
  std::vector<std::string> names;
  for (const JsonValue& item : value.items()) {
    names.push_back(text_of(item));
  }
  return value.is_array() ? fmt::format("{}", fmt::join(names, "+")) : value.to_json();
}

struct Params {
  std::string file;  // with its parameters put in
  std::optional<RowPick> pick;
  GpqaWanted gpqa;
  bool seed_is_given = false;
  bool again = false;  // force_regenerate
};

void put(std::string& file, std::string_view name, std::string_view value) {
  const std::string hole = fmt::format("{{{}}}", name);
  for (std::size_t at = file.find(hole); at != std::string::npos; at = file.find(hole)) {
    file.replace(at, hole.size(), value);
  }
}

base::Result<std::uint64_t> whole(std::string_view name, const JsonValue& value,
                                  std::int64_t least) {
  if (!value.is_integer() || (value.kind() == text::JsonKind::kInt && value.as_int() < least)) {
    return refuse("generate_params.{}: {} must be a whole number of at least {}", name,
                  value.to_json(), least);
  }
  return value.as_uint();
}

// Those of a set that is made here. False: it has no such parameter, or not with such a value.
bool read_making(std::string_view name, const JsonValue& value, Params& out) {
  if (name == "force_regenerate" && value.kind() == text::JsonKind::kBool) {
    out.again = value == JsonValue::of_bool(true);
    return true;
  }
  if (name == "source" && value.is_string() && !value.as_string().empty()) {
    out.gpqa.source = value.as_string();
    return true;
  }
  return false;
}

base::Result<Params> read_params(const Predefined& known, const JsonValue& params) {
  Params out;
  out.file = known.file;
  RowPick pick;
  bool picks = false;
  for (const auto& [name, value] : params.members()) {
    const bool fills = std::any_of(known.defaults.begin(), known.defaults.end(),
                                   [&key = name](const auto& d) { return d.first == key; });
    if (fills) {
      const std::string text = text_of(value);
      if (text.empty() || text.find('/') != std::string::npos || text.find("..") == 0) {
        return refuse("generate_params.{}: '{}' is not the name of a folder", name, text);
      }
      put(out.file, name, text);
      out.gpqa.variant = text;
    } else if (known.sampled && (name == "seed" || name == "max_samples")) {
      const auto number = value.is_null() ? base::Result<std::uint64_t>(0)
                                          : whole(name, value, name == "seed" ? 0 : 1);
      if (!number) {
        return tl::unexpected(number.error());
      }
      (name == "seed" ? pick.seed : pick.count) = *number;
      picks = picks || (name == "max_samples" && !value.is_null());
      out.seed_is_given = out.seed_is_given || name == "seed";
    } else if (known.made && (name == "source" || name == "force_regenerate")) {
      if (!read_making(name, value, out)) {
        return refuse("generate_params.{}: {} must be {}", name, value.to_json(),
                      name == "source" ? "a file, a folder or a path at the hub" : "true or false");
      }
    } else if (name == "force_regenerate" && value == JsonValue::of_bool(false)) {
      continue;
    } else {
      return refuse(
          "generate_params.{}: nothing is generated here, '{}' is read as its cached "
          "file has it; remove the parameter",
          name, known.id);
    }
  }
  for (const auto& [name, value] : known.defaults) {
    put(out.file, name, value);
  }
  out.pick = picks ? std::optional(pick) : std::nullopt;
  out.gpqa.order.seed = pick.seed;
  out.gpqa.order.count = picks ? std::optional(pick.count) : std::nullopt;
  return out;
}

// The file itself, or the only data file of a folder.
std::optional<std::string> present(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    return path.string();
  }
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const std::string suffix = entry.path().extension().string();
    if (suffix == ".parquet" || suffix == ".jsonl") {
      found.push_back(entry.path().string());
    }
  }
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

// Where a set is that is made here: what the reference makes without parameters under its name for
// it, so that neither program takes a part of the set for the whole; anything else beside that.
std::string made_path(const std::string& usual, const GpqaOrder& order) {
  if (order.seed == 0 && !order.count) {
    return usual;
  }
  std::filesystem::path path(usual);
  const std::string part = order.count ? fmt::format("_of{}", *order.count) : std::string();
  path.replace_filename(fmt::format("{}_seed{}{}{}", path.stem().string(), order.seed, part,
                                    path.extension().string()));
  return path.string();
}

// From its own file, else from that of the reference, else made. `usual` is the reference's path.
base::Result<CachedSet> find_made(std::string_view name, const Params& params,
                                  const std::string& usual) {
  const std::string own = made_path(usual, params.gpqa.order);
  CachedSet out;
  if (!params.again) {
    for (const std::string& path : {own, usual}) {
      if (auto found = present(path)) {
        out.path = std::move(*found);
        break;
      }
    }
  }
  if (!out.path.empty()) {
    out.notes.push_back(fmt::format("predefined data set '{}' is read from {}", name, out.path));
    if (out.path != own) {
      out.pick = params.pick;
      out.notes.push_back(fmt::format(
          "its choices are in the order that file has them in{}; force_regenerate: true makes {}",
          params.seed_is_given ? ", whatever the seed" : "", own));
    }
    return out;
  }
  const auto made = make_gpqa(params.gpqa, own);
  if (!made) {
    return base::fail(
        made.error().code,
        fmt::format("data set '{}' is not here ({}), and could not be made: {}. It is made of {}: "
                    "generate_params.source may name a folder that holds gpqa_{}.csv; or bring the "
                    "reference client's dataset_cache",
                    name, own, made.error().message, "Hugging Face's Idavidrein/gpqa",
                    params.gpqa.variant));
  }
  out.path = own;
  out.notes.push_back(fmt::format("predefined data set '{}' was made of {}: {}", name, *made, own));
  return out;
}

base::Status check_preset(const Predefined& known, std::string_view preset) {
  if (preset.empty() || preset == known.preset) {
    return {};
  }
  if (preset == known.texts) {
    return refuse(
        "preset '{0}' of data set '{1}' puts the reference client's prompt text around "
        "its columns, which is not part of tutti. Write the finished prompts to a JSONL "
        "file and give it as path, or take the bare column: name it otherwise, with "
        "path: (the cached file) and parser: {{prompt: COLUMN}}",
        preset, known.id);
  }
  return refuse("Dataset {} does not have a preset model transform for {}", known.id, preset);
}

}  // namespace

bool is_predefined(std::string_view name) { return named(parts(name).first) != nullptr; }

std::string predefined_ids() {
  std::vector<std::string_view> ids;
  for (const Predefined& known : all()) {
    ids.push_back(known.id);
  }
  std::sort(ids.begin(), ids.end());
  return fmt::format("{}", fmt::join(ids, ", "));
}

base::Result<CachedSet> find_predefined(std::string_view name, const JsonValue& params,
                                        const std::string& cache) {
  const auto [id, preset] = parts(name);
  const Predefined* const known = named(id);
  if (known == nullptr || preset.find("::") != std::string_view::npos) {
    return refuse("Invalid dataset name '{}': it is ID or ID::PRESET", name);
  }
  if (id == kRandomSet) {
    return refuse("Dataset {} does not have a preset model transform for {}", id, preset);
  }
  if (id == "agentic_inference_conversations") {
    return refuse(
        "data set '{}' cannot be generated; give its file as path, under another name, "
        "with agentic_inference",
        id);
  }
  if (auto status = check_preset(*known, preset); !status) {
    return tl::unexpected(status.error());
  }
  auto read = read_params(*known, params);
  if (!read) {
    return tl::unexpected(read.error());
  }
  const std::string wanted = cache + "/" + read->file;
  if (known->made) {
    return find_made(name, *read, wanted);
  }
  const auto path = present(wanted);
  if (!path) {
    return refuse(
        "data set '{}' is not here: {} {}. It comes from {}; let the reference client "
        "generate it in this folder, or bring its dataset_cache, or give a file of your "
        "own as path under another name",
        id, wanted,
        wanted.back() == '/' ? "does not hold exactly one Parquet or JSONL file" : "does not exist",
        known->source);
  }
  CachedSet out;
  out.path = *path;
  out.pick = read->pick;
  out.notes.push_back(fmt::format("predefined data set '{}' is read from {}", name, *path));
  if (!preset.empty()) {
    out.parser = known->renames;
  }
  return out;
}

std::vector<std::uint64_t> picked_rows(const RowPick& pick, std::uint64_t rows) {
  if (pick.count >= rows) {
    std::vector<std::uint64_t> out(rows);
    std::iota(out.begin(), out.end(), std::uint64_t{0});
    return out;
  }
  base::Mt19937 random(pick.seed);
  return sampled(random, rows, pick.count);
}

std::vector<std::uint64_t> sampled(base::Mt19937& random, std::uint64_t rows, std::uint64_t count) {
  TUTTI_CHECK(count <= rows);
  // CPython: a pool when it is small against what is drawn, else a set of those drawn before.
  std::uint64_t pool_max = 21;
  if (count > 5) {
    std::uint64_t power = 1;
    while (power < 3 * count) {
      power *= 4;
    }
    pool_max += power;
  }
  std::vector<std::uint64_t> out;
  if (rows <= pool_max) {
    std::vector<std::uint64_t> pool(rows);
    std::iota(pool.begin(), pool.end(), std::uint64_t{0});
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t j = random.below(rows - i);
      out.push_back(pool[j]);
      pool[j] = pool[rows - i - 1];
    }
    return out;
  }
  std::unordered_set<std::uint64_t> drawn;
  while (out.size() < count) {
    const std::uint64_t j = random.below(rows);
    if (drawn.insert(j).second) {
      out.push_back(j);
    }
  }
  return out;
}

}  // namespace tutti::data
