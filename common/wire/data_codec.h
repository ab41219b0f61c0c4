#pragma once

// data_codec: Lease and RecordBatch ⇄ MessagePack, by columns: one array per field, stamps as
// differences, a column whose rows are all alike as that one value. The layout is in
// docs/protocol.md. See codec.h for what decoding promises. Pure; any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/messages.h"

namespace tutti::wire {

inline constexpr std::uint32_t kDataVersion = 4;

// At most kLeaseCommandsMax commands.
std::string encode_lease(const Lease& lease);

// At most kBatchRecordsMax counts of tokens, and as many records, whose record_bytes_max() add up
// to kPayloadBytesMax - 1 KiB.
std::string encode_records(const RecordBatch& batch);

// What one record can add to an encoded batch at most: recorders cut their batches with it.
std::size_t record_bytes_max(const Record& record);

base::Result<Message> decode_data(std::string_view bytes);

}  // namespace tutti::wire
