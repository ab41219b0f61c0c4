#pragma once

// The C ABI of the one Rust library (common/rust/src): tokenizers, chat templates, column files.
// Text is UTF-8 with a size, never ended by zero. A function that can fail leaves its words in
// `error`, which the caller frees with tutti_bytes_free as it does any other TuttiBytes it was
// given; nothing unwinds. Everything may be called from any thread; one tokenizer or template may
// be used by many at once. Where cargo is missing, absent.cc stands in: every function then fails
// with words that say so.

#include <cstddef>
#include <cstdint>

extern "C" {

struct TuttiBytes {
  char* data;
  std::size_t size;
};
void tutti_bytes_free(TuttiBytes bytes);

// False: this build has no Rust in it.
bool tutti_rust_present();

struct TuttiTokenizer;
// `json`: the whole of a tokenizer.json; what it says of truncation and padding does not count.
// Null on error.
TuttiTokenizer* tutti_tokenizer_open(const char* json, std::size_t size, TuttiBytes* error);
void tutti_tokenizer_close(TuttiTokenizer* tokenizer);
// Tokens of `text`; none are added around it, and those written in it are taken as such. -1: error.
std::int64_t tutti_tokenizer_count(const TuttiTokenizer* tokenizer, const char* text,
                                   std::size_t size, TuttiBytes* error);
// `ids`: uint32 each, of this machine's byte order.
bool tutti_tokenizer_encode(const TuttiTokenizer* tokenizer, const char* text, std::size_t size,
                            TuttiBytes* ids, TuttiBytes* error);
// Special tokens are written out too.
bool tutti_tokenizer_decode(const TuttiTokenizer* tokenizer, const std::uint32_t* ids,
                            std::size_t count, TuttiBytes* text, TuttiBytes* error);
std::size_t tutti_tokenizer_vocab_size(const TuttiTokenizer* tokenizer, bool with_added);
// -1: no such token.
std::int64_t tutti_tokenizer_id(const TuttiTokenizer* tokenizer, const char* token,
                                std::size_t size);

struct TuttiTemplate;
// Null on error.
TuttiTemplate* tutti_template_open(const char* source, std::size_t size, TuttiBytes* error);
void tutti_template_close(TuttiTemplate* chat);
// `context`: a JSON object of the template's variables. `local_seconds`: what strftime_now tells,
// in seconds since 1970 of the local clock.
bool tutti_template_render(const TuttiTemplate* chat, const char* context, std::size_t size,
                           std::int64_t local_seconds, TuttiBytes* text, TuttiBytes* error);

struct TuttiRows;
// A Parquet file, else an Arrow stream (what Hugging Face's save_to_disk writes). Null on error.
TuttiRows* tutti_rows_open(const char* path, std::size_t size, TuttiBytes* error);
void tutti_rows_close(TuttiRows* rows);
// `names`: a JSON list of all columns, in the file's order.
bool tutti_rows_columns(const TuttiRows* rows, TuttiBytes* names, TuttiBytes* error);
// `names`: a JSON list of the columns to read; one whose type JSON cannot tell is an error.
bool tutti_rows_choose(TuttiRows* rows, const char* names, std::size_t size, TuttiBytes* error);
// The next few hundred rows, each a JSON object and a line end; nothing after the last. Memory is
// bounded by a page of each chosen column (Parquet) or by a batch as it was written (Arrow).
bool tutti_rows_next(TuttiRows* rows, TuttiBytes* lines, TuttiBytes* error);

// Writes a Parquet file of text columns, and waits until it is on disk. `columns`: a JSON list of
// [name, [text or null, …]], of equal lengths, in the file's order.
bool tutti_table_write(const char* path, std::size_t path_size, const char* columns,
                       std::size_t size, TuttiBytes* error);

}  // extern "C"
