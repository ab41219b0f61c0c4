#pragma once

// How agents reach the frontends, from `distributed` into the target they are sent: proxy, HTTP
// version, headers, login, certificates. The PEM files are read here, once, so that they need to be
// on the coordinator's host only. No owner.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/spec/config.h"
#include "common/wire/messages.h"

namespace tutti::conduct {

// All but the files. Authorization first, as api_key has it; the user's headers come last.
void add_reach(const spec::Config& config, wire::TargetSpec& target);

// kInput errors name every file that cannot be read or is no PEM of its kind.
base::Status read_certificates(const spec::Distributed& distributed, wire::TargetSpec& target);

// Texts of this config that no log, process list or environment may show.
std::vector<std::string> secrets_of(const spec::Config& config);

}  // namespace tutti::conduct
