#pragma once

// The URL a request goes to: the endpoint of the config joined with the route of the API, by the
// reference client's rule (RFC 3986 join of "endpoint/" with the route). So a prefix path is kept,
// a query string never reaches the wire, userinfo is dropped, the host is lower-cased.

#include <string>
#include <string_view>

#include "common/base/vocabulary.h"

namespace tutti::data {

// `endpoint` starts with http:// or https://.
std::string request_url(std::string_view endpoint, base::ApiType api);

// True when the endpoint's own path ends in /v1, so that the URL has it twice: worth a warning.
bool doubles_version(std::string_view endpoint);

}  // namespace tutti::data
