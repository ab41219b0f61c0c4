#include "tests/support/thread_allocations.h"

#include <sys/prctl.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<const char*> g_prefix{nullptr};
std::atomic<std::uint64_t> g_count{0};

void* counted(std::size_t size) {
  if (const char* prefix = g_prefix.load(std::memory_order_relaxed); prefix != nullptr) {
    char name[16] = {};
    prctl(PR_GET_NAME, name);
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) {
      ++g_count;
    }
  }
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

namespace tutti::support {

void count_allocations(const char* prefix) {
  g_count = 0;
  g_prefix = prefix;
}

std::uint64_t counted_allocations() {
  g_prefix = nullptr;
  return g_count;
}

}  // namespace tutti::support

void* operator new(std::size_t size) {
  void* memory = counted(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
