#include "common/hub/hub_terms.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace tutti::hub {
namespace {

namespace fs = std::filesystem;

std::string first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (std::string value = environment(name); !value.empty()) {
      return value;
    }
  }
  return {};
}

fs::path home_of(const Environment& environment) {
  if (const std::string home = environment("HF_HOME"); !home.empty()) {
    return home;
  }
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::path(cache) / "huggingface";
  }
  return fs::path(environment("HOME")) / ".cache" / "huggingface";
}

std::string without_blanks(std::string text) {
  const auto blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  text.erase(std::remove_if(text.begin(), text.end(), blank), text.end());
  return text;
}

std::string token_of(const Environment& environment, const fs::path& home) {
  if (std::string token = without_blanks(environment("HF_TOKEN")); !token.empty()) {
    return token;
  }
  const std::string path = environment("HF_TOKEN_PATH");
  std::ifstream file(path.empty() ? home / "token" : fs::path(path));
  return without_blanks({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

bool is_yes(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

}  // namespace

HubTerms hub_terms(const Environment& environment) {
  HubTerms terms;
  if (const std::string endpoint = without_blanks(environment("HF_ENDPOINT")); !endpoint.empty()) {
    terms.endpoint = endpoint;
  }
  while (!terms.endpoint.empty() && terms.endpoint.back() == '/') {
    terms.endpoint.pop_back();
  }
  const fs::path home = home_of(environment);
  terms.token = token_of(environment, home);
  const std::string cache = environment("HF_HUB_CACHE");
  terms.cache = cache.empty() ? (home / "hub").string() : cache;
  terms.ca_file = first_set(environment, {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"});
  terms.offline = is_yes(environment("HF_HUB_OFFLINE"));
  return terms;
}

std::string process_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace tutti::hub
