// Memory for a program that plays worlds: a world is made of small pieces that come and go by the
// million, and malloc() and free() were an eighth of all its work. Here a piece is taken from a
// list of its size and put back there; what is large, or wants more alignment, goes to malloc().
// Nothing is ever given back to the system. For programs of one thread that live for their worlds
// (sim_seeds); no test is linked with it, so that a sanitizer sees every piece.

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kGrain = 16;
constexpr std::size_t kSmallMax = 1024;
constexpr std::size_t kLists = kSmallMax / kGrain + 1;
constexpr std::size_t kChunk = std::size_t{1} << 20;

// Before each piece; as long as the alignment that new promises.
struct alignas(kGrain) Head {
  std::size_t list;  // kLists: malloc() made it
  Head* next;        // only while it is free
};
static_assert(sizeof(Head) == kGrain && alignof(std::max_align_t) <= kGrain);

Head* free_pieces[kLists];
char* rest = nullptr;  // of the newest chunk
std::size_t rest_bytes = 0;

char* from_system(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) {
    std::abort();  // nobody here could go on
  }
  return static_cast<char*>(memory);
}

[[gnu::noinline]] void* make(std::size_t list, std::size_t bytes) {
  const std::size_t whole = sizeof(Head) + (list < kLists ? list * kGrain : bytes);
  char* memory = nullptr;
  if (list == kLists) {
    memory = from_system(whole);
  } else {
    if (rest_bytes < whole) {
      rest = from_system(kChunk);
      rest_bytes = kChunk;
    }
    memory = rest;
    rest += whole;
    rest_bytes -= whole;
  }
  Head* head = ::new (static_cast<void*>(memory)) Head{list, nullptr};
  return head + 1;
}

}  // namespace

void* operator new(std::size_t bytes) {
  const std::size_t list = bytes <= kSmallMax ? (bytes + kGrain - 1) / kGrain : kLists;
  if (list == kLists || free_pieces[list] == nullptr) {
    return make(list, bytes);
  }
  Head* head = free_pieces[list];
  free_pieces[list] = head->next;
  return head + 1;
}

void operator delete(void* piece) noexcept {
  if (piece == nullptr) {
    return;
  }
  Head* head = static_cast<Head*>(piece) - 1;
  if (head->list == kLists) {
    std::free(head);
    return;
  }
  head->next = free_pieces[head->list];
  free_pieces[head->list] = head;
}

void operator delete(void* piece, std::size_t /*bytes*/) noexcept { operator delete(piece); }
