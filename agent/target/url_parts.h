#pragma once

// A URL of curl's, owned, and its parts as text. Pure; any thread.

#include <curl/curl.h>

#include <memory>
#include <string>

namespace tutti::target {

struct UrlFree {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlFree>;

// Empty when the URL has no such part. `flags`: CURLU_…
inline std::string url_part(const Url& url, CURLUPart what, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), what, &text, flags) != CURLUE_OK) {
    return {};
  }
  std::string copy = text;
  curl_free(text);
  return copy;
}

}  // namespace tutti::target
