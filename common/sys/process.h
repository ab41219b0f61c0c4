#pragma once

// Gauges of this process and its threads, for the client-health part of a report; and what keeps
// its secrets from others. Cheap enough for every heartbeat, not for a hot path. Any thread.

#include <pthread.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/time.h"

namespace tutti::sys {

// Resident memory, 0 when /proc is not there.
std::uint64_t resident_bytes();

// Descriptors open now. Linux 6.2 and later tell it by one stat; before that /proc/self/fd is
// listed.
std::uint32_t open_descriptors();

// CPU time a thread has used so far. The thread must be alive.
base::Duration thread_cpu(pthread_t thread);
// The same of the calling thread.
base::Duration thread_cpu();

// Processors this process may run on (its affinity mask), at least 1.
std::uint32_t usable_cores();

// For a process that holds a key: it leaves no core behind, and no other process of its user may
// read its memory or environment.
void keep_memory_private();
// Overwrites `secret` in this process's environment where it is a variable's value, or its last
// word, so that neither /proc nor a child shows it. Nothing shorter than 6 characters is one.
// Before other threads read the environment.
void hide_in_environment(std::string_view secret);

// From now on the calling thread runs when no other on its core wants to (SCHED_IDLE); where that
// is refused, at the lowest niceness. For work beside a measurement.
void take_spare_time();

// At most 15 characters are kept; shows in top -H and gdb.
void name_this_thread(const std::string& name);

}  // namespace tutti::sys
