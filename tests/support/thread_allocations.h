#pragma once

// Counts operator new of threads by their name, in a program that links thread_allocations.cc
// (which replaces the global operators). Any thread may be counted; the two functions are the
// test's.

#include <cstdint>

namespace tutti::support {

// From now on, of the threads whose name begins with `prefix` (at most 15 characters).
void count_allocations(const char* prefix);
// Ends the count and says it.
std::uint64_t counted_allocations();

}  // namespace tutti::support
