#include "common/model/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tutti::model {
namespace {

// These files write integers beyond 64 bits (for "no limit"), which only this reader takes.
using Json = nlohmann::ordered_json;

base::Result<Json> read_object(std::string_view json, std::string_view name,
                               std::string_view file) {
  if (json.empty()) {
    return Json::object();
  }
  Json value = Json::parse(json, nullptr, false);
  if (!value.is_object()) {
    return base::fail(
        base::ExitCode::kSetup,
        fmt::format("{}: {} holds no JSON object; fetch the model's files anew", name, file));
  }
  return value;
}

// A special token is written as its text, or as an object that holds it.
void add_specials(const Json& from, std::vector<text::JsonValue::Member>& specials) {
  constexpr std::string_view kEnding = "_token";
  for (const auto& [key, value] : from.items()) {
    const bool token = key.size() > kEnding.size() &&
                       key.compare(key.size() - kEnding.size(), kEnding.size(), kEnding) == 0;
    const bool known = std::any_of(specials.begin(), specials.end(),
                                   [&key = key](const auto& has) { return has.first == key; });
    const Json& text = value.is_object() && value.contains("content") ? value["content"] : value;
    if (token && !known && text.is_string()) {
      specials.emplace_back(key, text::JsonValue::of_string(text.get<std::string>()));
    }
  }
}

// Of several named templates the one called "default".
std::string template_in(const Json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end()) {
    return {};
  }
  if (found->is_string()) {
    return found->get<std::string>();
  }
  for (const Json& named : *found) {
    if (named.is_object() && named.value("name", "") == "default") {
      return named.value("template", "");
    }
  }
  return {};
}

}  // namespace

base::Result<ModelConfig> read_model_config(const ModelFiles& files) {
  const auto config = read_object(files.tokenizer_config, files.name, "tokenizer_config.json");
  const auto map = read_object(files.special_tokens_map, files.name, "special_tokens_map.json");
  if (!config || !map) {
    return tl::unexpected(config ? map.error() : config.error());
  }
  ModelConfig out;
  out.chat_template = files.chat_template.empty() ? template_in(*config) : files.chat_template;
  add_specials(*config, out.specials);
  add_specials(*map, out.specials);
  return out;
}

}  // namespace tutti::model
