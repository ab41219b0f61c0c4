#pragma once

// How curl's end of a transfer reads in our words: an EndKind for the reply's judgement and a
// sentence for the record. Pure. The sentence names the frontend by host:port and never a header or
// a body.

#include <string>
#include <string_view>

#include "agent/target/reply.h"

namespace tutti::target {

struct CurlFacts {
  int code = 0;                  // CURLcode
  int os_error = 0;              // errno of a failed connect or socket, 0: none known
  bool header_seen = false;      // the final reply header came
  std::string_view curl_text;    // curl's own error text, may be empty
  std::string_view frontend;     // host:port
  std::string_view proxy;        // likewise, of the one on the way; empty: none
  bool prior_knowledge = false;  // HTTP/2 without TLS, and nothing came back
  int connect_status = 0;        // a proxy's answer to CONNECT, 0: none known
};

EndKind end_kind_of(const CurlFacts& facts);
std::string end_detail_of(const CurlFacts& facts);
// This host had no port, descriptor or memory left for a connection: no frontend's fault.
bool is_shortage_here(int os_error);

}  // namespace tutti::target
