#pragma once

// What the conformance tests share: reading a vector file that lies beside them, and the digests
// the files use (SHA-256 of decimals joined by commas). Test code only.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace tutti::conformance {

// `name` is a file of tests/conformance. A missing or broken file fails the test by exception.
nlohmann::json load_vectors(const std::string& name);

std::string sha256(const std::string& text);

template <class T>
std::string csv(const std::vector<T>& values) {
  std::string out;
  for (const T& value : values) {
    if (!out.empty()) {
      out += ',';
    }
    out += std::to_string(value);
  }
  return out;
}

// Every number of the files that may exceed 53 bits is a decimal string.
std::uint64_t seed_of(const std::string& decimal);

}  // namespace tutti::conformance
