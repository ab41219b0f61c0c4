// keys: the key pairs with which coordinator and agents on other hosts know each other.

#include <fmt/format.h>

#include <cstdio>

#include "common/base/log.h"
#include "common/wire/curve.h"
#include "coordinator/commands.h"

namespace tutti {

using base::ExitCode;

std::string keys_help() {
  return "Usage: tutti keys new FILE\n"
         "       tutti keys show FILE\n"
         "\n"
         "new   makes a key pair: FILE (mode 0600, keep it) and FILE.pub (give it away). An "
         "existing\n"
         "      file is never overwritten.\n"
         "show  prints the public key of FILE, a pair or a .pub, as a line of an agent_keys file.\n"
         "\n"
         "A run with agents on other hosts needs two pairs, one for the coordinator and one that "
         "all\n"
         "its agents share, or one for each agent:\n"
         "\n"
         "  tutti keys new coordinator.key\n"
         "  tutti keys new agent.key\n"
         "  tutti benchmark from-config -c point.yaml --listen tcp://0.0.0.0:7700 "
         "--expect-agents 3 \\\n"
         "      --keys coordinator.key --agent-keys agent.key.pub\n"
         "  tutti-agent --connect tcp://COORDINATOR:7700 --keys agent.key \\\n"
         "      --coordinator-key coordinator.key.pub\n"
         "\n"
         "Traffic is encrypted (CURVE). A peer with another key is turned away and named in the "
         "log.\n";
}

ExitCode keys_command(const Words& words) {
  if (words.size() != 2 || (words[0] != "new" && words[0] != "show")) {
    return usage_error("keys needs new FILE or show FILE", "keys");
  }
  const std::string& path = words[1];
  const bool is_new = words[0] == "new";
  if (is_new) {
    if (const auto written = wire::write_key_pair(path, wire::fresh_key_pair()); !written) {
      base::log_error("keys", written.error().message);
      return written.error().code;
    }
  }
  if (!is_new) {
    if (const auto open = wire::read_public_keys(path)) {  // a .pub: nothing in it is secret
      for (const std::string& key : *open) {
        std::fputs(fmt::format("public {}\n", key).c_str(), stdout);
      }
      return ExitCode::kOk;
    }
  }
  const auto pair = wire::read_key_pair(path);
  if (!pair) {
    base::log_error("keys", pair.error().message);
    return pair.error().code;
  }
  if (is_new) {
    base::log_info("keys",
                   fmt::format("{} (keep it) and {}.pub (give it away) are written", path, path));
  }
  std::fputs(fmt::format("public {}\n", pair->public_key).c_str(), stdout);
  return ExitCode::kOk;
}

}  // namespace tutti
