#pragma once

// Errors as values. An Error tells its reader what is wrong, where, and what to do about it; a
// function that can find several problems returns all of them (Problems), not the first.

#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace tutti::base {

// Process exit codes. 0–4 and 130 are the reference client's (docs/operating.md); the rest are
// ours.
enum class ExitCode : int {
  kOk = 0,
  kUsage = 1,      // bad flags, or a config that came from flags
  kInput = 2,      // bad YAML, bad data set
  kSetup = 3,      // could not get ready: frontend unreachable, agent missing
  kExecution = 4,  // failed after set-up: watchdog, lost agent, every request failed
  kInterrupted = 130
};

struct Error {
  ExitCode code = ExitCode::kExecution;
  std::string message;  // one line: what, where, and the remedy; never a secret
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

inline tl::unexpected<Error> fail(ExitCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// One problem of an input: `where` is "file:line" or a flag, `field` a dotted path.
struct Problem {
  std::string where;
  std::string field;
  std::string value;   // as written, redacted when the field is secret
  std::string remedy;  // what is wrong and what would be right
};

using Problems = std::vector<Problem>;

}  // namespace tutti::base
