#pragma once

// HubTerms: what the environment says of Hugging Face's hub, in the words of its own library, so
// that what works there works here: HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH, or
// HF_HOME/token), HF_HUB_CACHE, HF_HOME, HF_HUB_OFFLINE; and SSL_CERT_FILE, CURL_CA_BUNDLE or
// REQUESTS_CA_BUNDLE. Plain values.

#include <functional>
#include <string>

namespace tutti::hub {

struct HubTerms {
  std::string endpoint = "https://huggingface.co";  // without a slash at its end
  std::string token;                                // empty: none; never printed
  std::string cache;                                // folder
  std::string ca_file;                              // empty: the system's
  bool offline = false;
};

// Value of a variable, empty when it is not set.
using Environment = std::function<std::string(const char* name)>;

HubTerms hub_terms(const Environment& environment);
std::string process_environment(const char* name);

}  // namespace tutti::hub
