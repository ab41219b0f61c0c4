#include "tests/conformance/random_vectors.h"

#include <openssl/sha.h>

#include <array>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace tutti::conformance {

nlohmann::json load_vectors(const std::string& name) {
  const std::string path = std::string(TUTTI_SOURCE_DIR) + "/tests/conformance/" + name;
  std::ifstream in(path);
  if (!in) {
    throw std::runtime_error("cannot open " + path);
  }
  return nlohmann::json::parse(in);
}

std::string sha256(const std::string& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  SHA256(bytes.data(), bytes.size(), digest.data());
  std::string out;
  for (const unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// A negative seed seeds like its magnitude: the sign is dropped here as the config reader drops it.
std::uint64_t seed_of(const std::string& decimal) {
  return std::stoull(decimal.front() == '-' ? decimal.substr(1) : decimal);
}

}  // namespace tutti::conformance
