#include "common/text/json_read.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "common/text/json_write.h"

namespace tutti::text {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

JsonValue convert(const element& from);

JsonValue convert_object(const simdjson::dom::object& from) {
  std::vector<JsonValue::Member> members;
  members.reserve(from.size());
  constexpr std::size_t kLinearMax = 16;  // beyond it a map finds repeated keys
  std::unordered_map<std::string_view, std::size_t> places;
  for (const auto& field : from) {
    std::size_t place = members.size();
    if (from.size() > kLinearMax) {
      place = places.emplace(field.key, place).first->second;
    } else {
      for (std::size_t i = 0; i < members.size() && place == members.size(); ++i) {
        place = members[i].first == field.key ? i : place;
      }
    }
    if (place == members.size()) {
      members.emplace_back(std::string(field.key), convert(field.value));
    } else {
      members[place].second = convert(field.value);
    }
  }
  return JsonValue::of_object(std::move(members));
}

JsonValue convert(const element& from) {
  switch (from.type()) {
    case element_type::ARRAY: {
      std::vector<JsonValue> items;
      for (const element item : simdjson::dom::array(from)) {
        items.push_back(convert(item));
      }
      return JsonValue::of_array(std::move(items));
    }
    case element_type::OBJECT:
      return convert_object(simdjson::dom::object(from));
    case element_type::INT64:
      return JsonValue::of_int(std::int64_t(from));
    case element_type::UINT64:
      return JsonValue::of_uint(std::uint64_t(from));
    case element_type::DOUBLE:
      return JsonValue::of_double(double(from));
    case element_type::STRING:
      return JsonValue::of_string(std::string(std::string_view(from)));
    case element_type::BOOL:
      return JsonValue::of_bool(bool(from));
    case element_type::NULL_VALUE:
      break;
  }
  return {};
}

// simdjson does not say where a document breaks; the slower library does, and only broken
// documents pay for it.
struct Locator : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& raw) override {
    if (raw.find_first_of(".eE") == std::string::npos && wide_integer.empty()) {
      wide_integer = raw;
    }
    return true;
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return true; }
  bool key(string_t& /*value*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    found = true;
    offset = position == 0 ? 0 : position - 1;
    reason = error.what();
    const std::size_t from = reason.find(": ");
    if (from != std::string::npos) {
      reason.erase(0, from + 2);
    }
    return false;
  }

  bool found = false;
  std::size_t offset = 0;
  std::string reason;
  std::string wide_integer;
};

std::size_t offset_of_depth(std::string_view text, std::size_t depth_max) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > depth_max) {
        return i;
      }
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return text.size();
}

JsonError place(std::string_view text, std::size_t offset, std::string reason) {
  JsonError error;
  error.offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, error.offset);
  error.line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n');
  error.column =
      line_start == std::string_view::npos ? error.offset + 1 : error.offset - line_start;
  // The parser's own words quote the input, which may be long or broken.
  constexpr std::size_t kReasonMax = 200;
  error.reason = reason.substr(0, kReasonMax);
  for (char& c : error.reason) {
    c = static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F ? '?' : c;
  }
  return error;
}

JsonError explain(std::string_view text, simdjson::error_code code, const JsonLimits& limits) {
  if (code == simdjson::DEPTH_ERROR) {
    return place(text, offset_of_depth(text, limits.depth_max),
                 fmt::format("nested deeper than {} levels", limits.depth_max));
  }
  Locator locator;
  nlohmann::json::sax_parse(text.begin(), text.end(), &locator);
  if (locator.found) {
    return place(text, locator.offset, locator.reason);
  }
  if (!locator.wide_integer.empty()) {
    return place(text, text.find(locator.wide_integer),
                 "an integer that does not fit 64 bits: " + locator.wide_integer);
  }
  return place(text, 0, simdjson::error_message(code));
}

constexpr std::size_t kKeepParserMax = std::size_t{8} << 20;

// One parser per thread; a giant document does not keep its memory.
template <class Use>
tl::expected<JsonValue, JsonError> with_document(std::string_view text, const JsonLimits& limits,
                                                 Use&& use) {
  std::size_t bom = 0;
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    bom = 3;
    text.remove_prefix(bom);
  }
  if (text.size() > limits.bytes_max) {
    return tl::unexpected<JsonError>(
        place(text, limits.bytes_max, fmt::format("document above {} bytes", limits.bytes_max)));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return tl::unexpected<JsonError>(place(text, 0, "empty document"));
  }
  thread_local simdjson::dom::parser parser;
  auto code = simdjson::SUCCESS;
  if (parser.capacity() < text.size() || parser.max_depth() != limits.depth_max + 1) {
    constexpr std::size_t kCapacityMin = 4096;
    code = parser.allocate(std::max({text.size(), parser.capacity(), kCapacityMin}),
                           limits.depth_max + 1);
  }
  element root;
  if (code == simdjson::SUCCESS) {
    code = parser.parse(text.data(), text.size(), true).get(root);
  }
  if (code != simdjson::SUCCESS) {
    JsonError error = explain(text, code, limits);
    error.offset += bom;
    return tl::unexpected<JsonError>(std::move(error));
  }
  JsonValue value = use(root);
  if (parser.capacity() > kKeepParserMax) {
    parser = simdjson::dom::parser();
  }
  return value;
}

}  // namespace

std::string JsonError::to_text() const {
  return fmt::format("line {}, column {}: {}", line, column, reason);
}

tl::expected<JsonValue, JsonError> read_json(std::string_view text, const JsonLimits& limits) {
  return with_document(text, limits, [](const element& root) { return convert(root); });
}

tl::expected<JsonValue, JsonError> read_json_items(
    std::string_view text, const JsonLimits& limits,
    const std::function<bool(std::size_t index, JsonValue&& item)>& each) {
  return with_document(text, limits, [&each](const element& root) {
    if (!root.is_array()) {
      return convert(root);
    }
    std::size_t index = 0;
    for (const element item : simdjson::dom::array(root)) {
      if (!each(index++, convert(item))) {
        break;
      }
    }
    return JsonValue::of_array({});
  });
}

}  // namespace tutti::text
