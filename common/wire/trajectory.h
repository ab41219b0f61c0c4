#pragma once

// Trajectory: so many commands of a lease are the turns of one conversation, to be sent one after
// the other, each when the one before has ended and its `due_offset` has passed since. Together
// they take one slot. Plain value.

#include <cstdint>
#include <string>

namespace tutti::wire {

struct Trajectory {
  std::uint32_t turns = 0;   // at least 1
  std::string conversation;  // what the routing headers say; not empty

  friend bool operator==(const Trajectory&, const Trajectory&) = default;
};

}  // namespace tutti::wire
