#include "common/data/request_url.h"

#include <algorithm>
#include <cctype>

namespace tutti::data {
namespace {

std::string_view route_of(base::ApiType api) {
  switch (api) {
    case base::ApiType::kOpenAiChat:
      return "v1/chat/completions";
    case base::ApiType::kOpenAiCompletions:
      return "v1/completions";
    case base::ApiType::kSglang:
      return "generate";
    case base::ApiType::kVideogen:
      break;
  }
  return "v1/videos/generations";
}

std::string_view without_trailing_slashes(std::string_view text) {
  while (!text.empty() && text.back() == '/') {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

std::string request_url(std::string_view endpoint, base::ApiType api) {
  std::string base(without_trailing_slashes(endpoint));
  base += '/';
  const std::size_t authority_at = base.find("://") + 3;
  // The join works on the path: a query or fragment ends it, and takes its last segment along.
  const std::size_t path_end = std::min(base.find_first_of("?#", authority_at), base.size());
  std::size_t path_at = base.find('/', authority_at);
  if (path_at == std::string::npos || path_at > path_end) {
    path_at = path_end;
  }
  std::string authority = base.substr(authority_at, path_at - authority_at);
  if (const std::size_t at = authority.rfind('@'); at != std::string::npos) {
    authority.erase(0, at + 1);
  }
  std::transform(authority.begin(), authority.end(), authority.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string path = base.substr(path_at, path_end - path_at);
  path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  return base.substr(0, authority_at) + authority + path + "/" + std::string(route_of(api));
}

bool doubles_version(std::string_view endpoint) {
  const std::string_view stem = without_trailing_slashes(endpoint);
  return stem.size() >= 3 && stem.substr(stem.size() - 3) == "/v1";
}

}  // namespace tutti::data
