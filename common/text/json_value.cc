#include "common/base/check.h"
#include "common/text/json_read.h"
#include "common/text/json_write.h"

namespace tutti::text {

JsonValue JsonValue::of_bool(bool value) {
  JsonValue made;
  made.kind_ = JsonKind::kBool;
  made.bool_ = value;
  return made;
}

JsonValue JsonValue::of_int(std::int64_t value) {
  JsonValue made;
  made.kind_ = JsonKind::kInt;
  made.int_ = value;
  return made;
}

JsonValue JsonValue::of_uint(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(INT64_MAX)) {
    return of_int(static_cast<std::int64_t>(value));
  }
  JsonValue made;
  made.kind_ = JsonKind::kUint;
  made.uint_ = value;
  return made;
}

JsonValue JsonValue::of_double(double value) {
  JsonValue made;
  made.kind_ = JsonKind::kDouble;
  made.double_ = value;
  return made;
}

JsonValue JsonValue::of_string(std::string value) {
  JsonValue made;
  made.kind_ = JsonKind::kString;
  made.string_ = std::move(value);
  return made;
}

JsonValue JsonValue::of_array(std::vector<JsonValue> items) {
  JsonValue made;
  made.kind_ = JsonKind::kArray;
  made.items_ = std::move(items);
  return made;
}

JsonValue JsonValue::of_object(std::vector<Member> members) {
  JsonValue made;
  made.kind_ = JsonKind::kObject;
  made.members_ = std::move(members);
  return made;
}

bool JsonValue::as_bool() const {
  TUTTI_CHECK(kind_ == JsonKind::kBool);
  return bool_;
}

std::int64_t JsonValue::as_int() const {
  TUTTI_CHECK(kind_ == JsonKind::kInt);
  return int_;
}

std::uint64_t JsonValue::as_uint() const {
  TUTTI_CHECK(kind_ == JsonKind::kUint || (kind_ == JsonKind::kInt && int_ >= 0));
  return kind_ == JsonKind::kUint ? uint_ : static_cast<std::uint64_t>(int_);
}

double JsonValue::as_double() const {
  TUTTI_CHECK(is_number());
  if (kind_ == JsonKind::kInt) {
    return static_cast<double>(int_);
  }
  return kind_ == JsonKind::kUint ? static_cast<double>(uint_) : double_;
}

const std::string& JsonValue::as_string() const {
  TUTTI_CHECK(kind_ == JsonKind::kString);
  return string_;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const Member& member : members_) {
    if (member.first == key) {
      return &member.second;
    }
  }
  return nullptr;
}

void JsonValue::write(JsonWriter& writer) const {
  switch (kind_) {
    case JsonKind::kNull:
      writer.null();
      return;
    case JsonKind::kBool:
      writer.boolean(bool_);
      return;
    case JsonKind::kInt:
      writer.integer(int_);
      return;
    case JsonKind::kUint:
      writer.unsigned_integer(uint_);
      return;
    case JsonKind::kDouble:
      writer.number(double_);
      return;
    case JsonKind::kString:
      writer.string(string_);
      return;
    case JsonKind::kArray:
      writer.begin_array();
      for (const JsonValue& item : items_) {
        item.write(writer);
      }
      writer.end_array();
      return;
    case JsonKind::kObject:
      writer.begin_object();
      for (const Member& member : members_) {
        writer.key(member.first);
        member.second.write(writer);
      }
      writer.end_object();
      return;
  }
}

std::string JsonValue::to_json() const {
  std::string out;
  JsonWriter writer(out);
  write(writer);
  return out;
}

std::string_view JsonValue::kind_name() const {
  switch (kind_) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "boolean";
    case JsonKind::kInt:
    case JsonKind::kUint:
      return "integer";
    case JsonKind::kDouble:
      return "number";
    case JsonKind::kString:
      return "string";
    case JsonKind::kArray:
      return "array";
    case JsonKind::kObject:
      return "object";
  }
  return "value";
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  return a.kind_ == b.kind_ && a.bool_ == b.bool_ && a.int_ == b.int_ && a.uint_ == b.uint_ &&
         a.double_ == b.double_ && a.string_ == b.string_ && a.items_ == b.items_ &&
         a.members_ == b.members_;
}

}  // namespace tutti::text
