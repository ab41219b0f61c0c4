// Any text gives names within the bound or an error with a message; and names, joined by commas,
// expand to themselves.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/text/hostlist.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string list(data, data + size);
  const auto names = tutti::text::expand_hostlist(list);
  if (!names) {
    return names.error().message.empty() ? (std::abort(), 1) : 0;
  }
  std::string joined;
  for (const auto& name : *names) {
    joined += (joined.empty() ? "" : ",") + name;
  }
  const auto again = tutti::text::expand_hostlist(joined);
  if (names->size() > tutti::text::kHostsMax || !again || *again != *names) {
    std::abort();
  }
  return 0;
}
