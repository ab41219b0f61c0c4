#include "agent/target/http_start.h"

#include <curl/curl.h>

#include <string>

namespace tutti::target {

base::Status start_http() {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (kReady != CURLE_OK) {
    return base::fail(base::ExitCode::kSetup,
                      std::string("libcurl cannot start: ") + curl_easy_strerror(kReady));
  }
  return {};
}

}  // namespace tutti::target
