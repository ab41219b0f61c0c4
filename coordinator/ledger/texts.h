#pragma once

// Texts: the long part of a record (output, error message, stamps of later chunks), packed into
// bytes for the ledger's text file and back. The packed form is private to one process: no version,
// no alignment, lengths as varints, stamps as zigzag deltas. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "common/wire/record.h"

namespace tutti::ledger {

struct Texts {
  std::string error_message;
  std::string finish_text;
  wire::OutputText output;
  std::vector<base::Instant> chunk_at;  // agent's clock, as in the record
};

// Appends the packed form to `out`; appends nothing when the record has none of it.
void pack_texts(const wire::Record& record, std::string& out);

// False when `bytes` is not a packed form (a damaged file). `out` is overwritten; its buffers are
// reused. Empty bytes give empty texts.
bool unpack_texts(std::string_view bytes, Texts& out);

}  // namespace tutti::ledger
