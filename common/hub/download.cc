#include "common/hub/download.h"

#include <curl/curl.h>

#include <algorithm>
#include <csignal>
#include <memory>

namespace tutti::hub {
namespace {

constexpr long kConnectTimeoutMs = 15'000;
constexpr long kSilenceTimeoutS = 30;
constexpr long kRedirectsMax = 10;
constexpr std::size_t kErrorBytesMax = 4096;

struct Free {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct Sink {
  CURL* easy;
  const Download& wanted;
  Downloaded& made;
  bool too_long = false;
};

std::size_t take(char* bytes, std::size_t one, std::size_t count, void* context) {
  auto& sink = *static_cast<Sink*>(context);
  const std::size_t size = one * count;
  long status = 0;
  curl_easy_getinfo(sink.easy, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200 && sink.wanted.into != nullptr) {
    return std::fwrite(bytes, 1, size, sink.wanted.into);
  }
  const std::size_t most = status == 200 ? sink.wanted.body_bytes_max : kErrorBytesMax;
  const std::size_t room = most - std::min(most, sink.made.body.size());
  sink.made.body.append(bytes, std::min(room, size));
  sink.too_long = status == 200 && size > room;
  return sink.too_long ? 0 : size;  // 0 ends the transfer
}

// Not 0 ends the transfer.
int interrupted(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  sigset_t pending;
  auto& made = *static_cast<Downloaded*>(context);
  made.interrupted = sigpending(&pending) == 0 &&
                     (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
  return made.interrupted ? 1 : 0;
}

void set_limits(CURL* easy, const Download& wanted) {
  const bool tls = wanted.url.rfind("https:", 0) == 0;
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kRedirectsMax);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kSilenceTimeoutS);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "tutti/" TUTTI_VERSION);
  if (!wanted.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, wanted.ca_file.c_str());
  }
}

}  // namespace

Downloaded download(const Download& wanted) {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  Downloaded made;
  const std::unique_ptr<CURL, Free> easy(kReady == CURLE_OK ? curl_easy_init() : nullptr);
  if (!easy) {
    made.failure = "libcurl cannot start";
    return made;
  }
  Sink sink{easy.get(), wanted, made};
  set_limits(easy.get(), wanted);
  curl_easy_setopt(easy.get(), CURLOPT_URL, wanted.url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &sink);
  curl_easy_setopt(easy.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy.get(), CURLOPT_XFERINFOFUNCTION, interrupted);
  curl_easy_setopt(easy.get(), CURLOPT_XFERINFODATA, &made);
  std::unique_ptr<curl_slist, Free> headers;
  if (!wanted.token.empty()) {
    // libcurl gives a header of this name to no other host, port or scheme it is led to.
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + wanted.token).c_str()));
    curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  }
  const CURLcode code = curl_easy_perform(easy.get());
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &made.status);
  if (sink.too_long) {
    made.failure = "the answer is too long";
  } else if (code == CURLE_WRITE_ERROR) {
    made.failure = "the file cannot be written: is the disk full?";
  } else if (code != CURLE_OK) {
    made.failure = curl_easy_strerror(code);
  }
  return made;
}

}  // namespace tutti::hub
