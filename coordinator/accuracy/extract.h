#pragma once

// Extractors: from a reply's text to the answer it gives, by the reference's rules with their
// quirks (docs/accuracy.md lists them). What is missing here is refused by name before a run.
// Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::accuracy {

enum class Extractor : std::uint8_t { kIdentity, kBoxedMath, kAbcd, kPythonCode, kFunctionCall };

// By the name in a config; nothing: not one of ours.
std::optional<Extractor> extractor_named(std::string_view name);
// "identity_extractor, …", for messages.
std::string extractor_names();
// As accuracy_results.json calls it.
const char* class_name(Extractor extractor);

// Nothing: no answer in there. The letter extractor gives "" instead, as the reference does.
std::optional<std::string> extract(Extractor extractor, std::string_view text);

}  // namespace tutti::accuracy
