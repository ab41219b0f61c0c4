#include "coordinator/conduct/token_rows.h"

#include <utility>

#include "common/model/tokenizer.h"

namespace tutti::conduct {

base::Result<model::ModelFiles> read_tokenizer(const std::string& name) {
  // A build that could not read it fetches nothing.
  const auto path = model::has_tokenizers() ? model::fetch_model(name) : model::find_model(name);
  return path ? model::read_model_files(*path) : tl::unexpected(path.error());
}

text::JsonValue json_of(const std::vector<std::uint32_t>& ids) {
  std::vector<text::JsonValue> items;
  items.reserve(ids.size());
  for (const std::uint32_t id : ids) {
    items.push_back(text::JsonValue::of_int(id));
  }
  return text::JsonValue::of_array(std::move(items));
}

}  // namespace tutti::conduct
