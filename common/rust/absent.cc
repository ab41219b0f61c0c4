// What stands in for the Rust library where there was no cargo to build it.

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/rust/abi.h"

namespace {

constexpr std::string_view kWhy =
    "this tutti was built without its Rust part; install cargo, build again";

void say_why(TuttiBytes* error) {
  *error = {static_cast<char*>(std::malloc(kWhy.size())), kWhy.size()};
  std::memcpy(error->data, kWhy.data(), kWhy.size());
}

}  // namespace

extern "C" {

void tutti_bytes_free(TuttiBytes bytes) { std::free(bytes.data); }
bool tutti_rust_present() { return false; }

TuttiTokenizer* tutti_tokenizer_open(const char*, std::size_t, TuttiBytes* error) {
  say_why(error);
  return nullptr;
}
void tutti_tokenizer_close(TuttiTokenizer*) {}
std::int64_t tutti_tokenizer_count(const TuttiTokenizer*, const char*, std::size_t,
                                   TuttiBytes* error) {
  say_why(error);
  return -1;
}
bool tutti_tokenizer_encode(const TuttiTokenizer*, const char*, std::size_t, TuttiBytes*,
                            TuttiBytes* error) {
  say_why(error);
  return false;
}
bool tutti_tokenizer_decode(const TuttiTokenizer*, const std::uint32_t*, std::size_t, TuttiBytes*,
                            TuttiBytes* error) {
  say_why(error);
  return false;
}
std::size_t tutti_tokenizer_vocab_size(const TuttiTokenizer*, bool) { return 0; }
std::int64_t tutti_tokenizer_id(const TuttiTokenizer*, const char*, std::size_t) { return -1; }

TuttiTemplate* tutti_template_open(const char*, std::size_t, TuttiBytes* error) {
  say_why(error);
  return nullptr;
}
void tutti_template_close(TuttiTemplate*) {}
bool tutti_template_render(const TuttiTemplate*, const char*, std::size_t, std::int64_t,
                           TuttiBytes*, TuttiBytes* error) {
  say_why(error);
  return false;
}

TuttiRows* tutti_rows_open(const char*, std::size_t, TuttiBytes* error) {
  say_why(error);
  return nullptr;
}
void tutti_rows_close(TuttiRows*) {}
bool tutti_rows_columns(const TuttiRows*, TuttiBytes*, TuttiBytes* error) {
  say_why(error);
  return false;
}
bool tutti_rows_choose(TuttiRows*, const char*, std::size_t, TuttiBytes* error) {
  say_why(error);
  return false;
}
bool tutti_rows_next(TuttiRows*, TuttiBytes*, TuttiBytes* error) {
  say_why(error);
  return false;
}

bool tutti_table_write(const char*, std::size_t, const char*, std::size_t, TuttiBytes* error) {
  say_why(error);
  return false;
}

}  // extern "C"
