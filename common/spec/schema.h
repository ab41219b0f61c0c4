#pragma once

// The schema: one table of fields, in the order of the written file. Reader, flags, help, dump and
// reference page are all driven by it; a default is the member initialiser of the struct, read
// through the row. Rows of `datasets[]` are a table of their own, rooted at DatasetSpec. Built
// once, read only.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/config.h"

namespace tutti::spec {

enum class FieldKind : std::uint8_t {
  kSection,      // a mapping with rows below it; where a row has an address it is `bool present`
  kDatasets,     // std::vector<DatasetSpec>
  kBool,         // bool
  kInt,          // std::int64_t
  kIntOrNull,    // std::optional<std::int64_t>
  kDuration,     // std::optional<std::int64_t>, ms; also written "10m", "30s", "500ms"
  kSeed,         // std::uint64_t
  kWholeOrNull,  // std::optional<WholeNumber>
  kFloat,        // double
  kFloatOrNull,  // std::optional<double>
  kText,         // std::string
  kTextOrNull,   // std::optional<std::string>
  kTextList,     // std::vector<std::string>
  kIntList,      // std::vector<std::int64_t>
  kTextMap,      // StringMap
  kTree,         // Tree: null or a free mapping
  kEnum,         // an enum of uint8_t; the row's `names` are its values in order
  kIgnored       // accepted, no address: a name the reference keeps for itself
};

enum class Support : std::uint8_t {
  kFull,
  kInert,   // accepted; a value other than the default draws a warning
  kRefused  // a value other than the default, or a section's presence, is a problem
};

struct Row {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  std::string path;  // dotted, from the table's root
  FieldKind kind = FieldKind::kSection;
  std::size_t offset = kNoAddress;  // of the member within the root struct
  std::string help;                 // one sentence
  std::vector<std::string> names;   // kEnum; "" stands for null
  std::vector<std::string> later;   // kEnum: values of the reference that are refused
  std::vector<std::string> flags;   // short flag names, without dashes
  double least = -kInfinity;
  double most = kInfinity;
  bool least_is_open = false;  // > instead of ≥
  bool most_is_open = false;
  bool is_zero_allowed = true;
  bool is_nullable = false;
  bool is_required = false;
  bool is_hidden = false;      // not in --help
  bool splits_commas = false;  // as a flag: one value may hold several, separated by commas
  Support support = Support::kFull;
  std::string instead;  // why it is inert or refused, and what to do

  static constexpr std::size_t kNoAddress = static_cast<std::size_t>(-1);

  bool has_address() const { return offset != kNoAddress; }
  bool is_secret() const;

  // Builders, so that a table reads as one line per fact.
  Row& about(std::string text);
  Row& flag(std::string name);
  Row& at_least(double value);
  Row& above(double value);
  Row& at_most(double value);
  Row& below(double value);
  Row& not_zero();
  Row& nullable();
  Row& required();
  Row& hidden();
  Row& one_of(std::vector<std::string> values);
  Row& not_yet(std::vector<std::string> values, std::string what_to_do);
  Row& commas();
  Row& duration();
  Row& inert(std::string why);
  Row& refused(std::string what_to_do);
};

class Schema {
 public:
  explicit Schema(std::vector<Row> rows) : rows_(std::move(rows)) {}

  const std::vector<Row>& rows() const { return rows_; }
  const Row* find(std::string_view path) const;
  // Direct children of a section; "" is the root.
  std::vector<const Row*> children(std::string_view section) const;

 private:
  std::vector<Row> rows_;
};

const Schema& config_schema();   // rooted at Config
const Schema& dataset_schema();  // rooted at DatasetSpec

// The member a row speaks of, inside `root`, which must be the struct the table is rooted at.
void* address_in(void* root, const Row& row);
const void* address_in(const void* root, const Row& row);

// The value a member holds, as it would be written; null where it is none.
Tree value_in(const void* root, const Row& row);

// "> 0", "1..65535", "" when anything goes.
std::string bounds_text(const Row& row);
// "int", "float or null", "one of perf, acc", …
std::string type_text(const Row& row);
// The default as it would be written in YAML.
std::string default_text(const Schema& schema, const Row& row);

}  // namespace tutti::spec
