#include "common/data/video_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "common/text/json_write.h"

namespace tutti::data {
namespace {

using text::JsonKind;
using text::JsonValue;

enum class Kind : std::uint8_t { kText, kNullableText, kInt, kFloat, kWord };

struct Field {
  std::string_view name;
  Kind kind;
  std::string_view text = {};  // default of kText and kWord; a nullable text is left out
  double number = 0;           // default of kInt and kFloat
  std::span<const std::string_view> words = {};
};

constexpr std::array<std::string_view, 3> kFormats{"mp4", "avi", "auto"};
constexpr std::array<std::string_view, 2> kResponses{"video_path", "video_bytes"};

// In wire order.
constexpr std::array<Field, 14> kFields{{
    {"prompt", Kind::kText},
    {"negative_prompt", Kind::kNullableText},
    {"size", Kind::kText, "720x1280"},
    {"seconds", Kind::kFloat, {}, 5.0},
    {"fps", Kind::kInt, {}, 16},
    {"num_inference_steps", Kind::kInt, {}, 20},
    {"guidance_scale", Kind::kFloat, {}, 4.0},
    {"guidance_scale_2", Kind::kFloat, {}, 3.0},
    {"seed", Kind::kInt, {}, 42},
    {"num_frames", Kind::kInt, {}, 81},
    {"boundary_ratio", Kind::kFloat, {}, 0.875},
    {"latent_path", Kind::kNullableText},
    {"output_format", Kind::kWord, "auto", 0, kFormats},
    {"response_format", Kind::kWord, "video_path", 0, kResponses},
}};

const Field* field_named(std::string_view name) {
  const auto* const found = std::find_if(kFields.begin(), kFields.end(),
                                         [name](const Field& field) { return field.name == name; });
  return found == kFields.end() ? nullptr : found;
}

bool is_word(const Field& field, const JsonValue& cell) {
  return cell.is_string() &&
         std::find(field.words.begin(), field.words.end(), cell.as_string()) != field.words.end();
}

void write_field(text::JsonWriter& json, const Field& field, const JsonValue* cell) {
  if (cell == nullptr && field.kind == Kind::kNullableText) {
    return;
  }
  json.key(field.name);
  if (field.kind == Kind::kFloat) {
    json.number(cell != nullptr ? cell->as_double() : field.number);  // 5 is sent as 5.0
  } else if (cell != nullptr) {
    cell->write(json);
  } else if (field.kind == Kind::kInt) {
    json.integer(static_cast<std::int64_t>(field.number));
  } else {
    json.string(field.text);
  }
}

}  // namespace

bool is_video_field(std::string_view name) { return field_named(name) != nullptr; }

bool is_video_number(std::string_view name) {
  const Field* const field = field_named(name);
  return field != nullptr && (field->kind == Kind::kInt || field->kind == Kind::kFloat);
}

std::string check_video_cell(std::string_view name, const JsonValue& cell) {
  const Field* const field = field_named(name);
  if (field == nullptr) {
    return {};
  }
  const auto need = [&](std::string_view what, bool met) {
    return met ? std::string()
               : fmt::format("{} must be {}, this is {}", name, what, cell.kind_name());
  };
  switch (field->kind) {
    case Kind::kText:
      return need("text", cell.is_string());
    case Kind::kNullableText:
      return need("text or null", cell.is_string() || cell.is_null());
    case Kind::kInt:
      return need("a whole number", cell.kind() == JsonKind::kInt);
    case Kind::kFloat:
      return need("a number", cell.is_number());
    case Kind::kWord:
      break;
  }
  return is_word(*field, cell)
             ? std::string()
             : fmt::format("{} must be one of {}", name, fmt::join(field->words, ", "));
}

void render_video(const JsonValue& cells, std::string& out) {
  text::JsonWriter json(out);
  json.begin_object();
  for (const Field& field : kFields) {
    const JsonValue* const cell = cells.find(field.name);
    write_field(json, field, cell == nullptr || cell->is_null() ? nullptr : cell);
  }
  json.end_object();
}

}  // namespace tutti::data
