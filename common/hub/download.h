#pragma once

// download(): one HTTP GET over libcurl, redirects followed, blocking. The token goes to the host
// of the URL only, and an https URL never leads to a plain one. A host that sends nothing for 30 s
// ends it, and so does a SIGINT or SIGTERM that waits while it is blocked (a run blocks them before
// it gets ready). Internal to this folder.

#include <cstddef>
#include <cstdio>
#include <string>

namespace tutti::hub {

struct Download {
  std::string url;
  std::string token;          // empty: none
  std::string ca_file;        // PEM; empty: the system's
  std::FILE* into = nullptr;  // takes the body of a 200; null: Downloaded::body does
  std::size_t body_bytes_max = std::size_t{1} << 20;
};

struct Downloaded {
  long status = 0;      // of the last answer; 0: none came
  std::string body;     // of an error, too; cut at body_bytes_max
  std::string failure;  // why there is no whole answer; empty: there is one
  bool interrupted = false;
};

Downloaded download(const Download& wanted);

}  // namespace tutti::hub
