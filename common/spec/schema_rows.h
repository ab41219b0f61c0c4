#pragma once

// How the tables of schema.h are put together: a row per member, a section per nested struct, paths
// and offsets composed on the way up. Only schema*.cc include this.

#include <type_traits>
#include <utility>
#include <vector>

#include "common/spec/schema.h"

namespace tutti::spec {

template <class T>
constexpr FieldKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return FieldKind::kBool;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return FieldKind::kInt;
  } else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    return FieldKind::kIntOrNull;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return FieldKind::kSeed;
  } else if constexpr (std::is_same_v<T, std::optional<WholeNumber>>) {
    return FieldKind::kWholeOrNull;
  } else if constexpr (std::is_same_v<T, double>) {
    return FieldKind::kFloat;
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return FieldKind::kFloatOrNull;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return FieldKind::kText;
  } else if constexpr (std::is_same_v<T, std::optional<std::string>>) {
    return FieldKind::kTextOrNull;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return FieldKind::kTextList;
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    return FieldKind::kIntList;
  } else if constexpr (std::is_same_v<T, StringMap>) {
    return FieldKind::kTextMap;
  } else if constexpr (std::is_same_v<T, std::vector<DatasetSpec>>) {
    return FieldKind::kDatasets;
  } else if constexpr (std::is_same_v<T, Tree>) {
    return FieldKind::kTree;
  } else {
    static_assert(std::is_enum_v<T> && sizeof(T) == 1, "no field kind for this type");
    return FieldKind::kEnum;
  }
}

// Bytes from the start of an S to its member. Measured on a real object: S need not be standard
// layout.
template <class S, class T>
std::size_t offset_of(T S::*member) {
  static const S kProbe{};
  const auto* start = reinterpret_cast<const char*>(&kProbe);
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&(kProbe.*member)) - start);
}

template <class S, class T>
Row field(std::string name, T S::*member) {
  Row row;
  row.path = std::move(name);
  row.kind = kind_of<T>();
  row.offset = offset_of(member);
  row.is_nullable = row.kind == FieldKind::kIntOrNull || row.kind == FieldKind::kFloatOrNull ||
                    row.kind == FieldKind::kTextOrNull || row.kind == FieldKind::kWholeOrNull ||
                    row.kind == FieldKind::kTree;
  return row;
}

// Rows of the nested struct `member`, headed by a row for the section itself.
template <class S, class T>
std::vector<Row> section(Row head, T S::*member, std::vector<Row> inner) {
  const std::size_t shift = offset_of(member);
  head.kind = FieldKind::kSection;
  if constexpr (requires(T value) { value.present; }) {
    head.offset = shift + offset_of(&T::present);
    head.is_nullable = true;
  }
  for (Row& row : inner) {
    row.path = head.path + "." + row.path;
    row.offset += row.has_address() ? shift : 0;
  }
  inner.insert(inner.begin(), std::move(head));
  return inner;
}

inline Row heading(std::string name) {
  Row row;
  row.path = std::move(name);
  return row;
}

inline Row ignored(std::string name) {
  Row row;
  row.path = std::move(name);
  row.kind = FieldKind::kIgnored;
  row.is_nullable = true;
  row.is_hidden = true;
  return row;
}

// Lists one after the other.
template <class... Lists>
std::vector<Row> together(Lists... lists) {
  std::vector<Row> all;
  (all.insert(all.end(), std::make_move_iterator(lists.begin()),
              std::make_move_iterator(lists.end())),
   ...);
  return all;
}

std::vector<Row> model_params_rows();  // of ModelParams
std::vector<Row> settings_rows();      // of Settings
std::vector<Row> distributed_rows();   // of Distributed

}  // namespace tutti::spec
