#pragma once

// CURVE keys: making them, keeping them in files, reading them back. Keys are Z85 text, 40
// characters. A key pair lives in one file that only its owner can read (mode 0600, refused
// otherwise); the public half is also written beside it as <path>.pub. An allow-list is any number
// of .pub files one after another. Functions without state; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tutti::wire {

struct KeyPair {
  std::string public_key;
  std::string secret_key;  // never logged
};

bool is_key(std::string_view text);

KeyPair fresh_key_pair();

// Creates `path` (0600) and `path`.pub. Existing files are not overwritten: an error.
base::Status write_key_pair(const std::string& path, const KeyPair& pair);

// Refuses a file that others can read, and a pair whose halves do not belong together.
base::Result<KeyPair> read_key_pair(const std::string& path);

// Lines "public KEY [who]"; lines that begin with "//" and empty ones are skipped. Every bad line
// is named. At least one key.
base::Result<std::vector<std::string>> read_public_keys(const std::string& path);

}  // namespace tutti::wire
