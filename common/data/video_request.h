#pragma once

// The body of a video request (api_type videogen): fourteen fields, of which a row may say any; the
// reference client's defaults stand for the rest and are always sent. Which fields there are, which
// values they take and how they are written is one table. Pure functions; any thread.

#include <string>
#include <string_view>

#include "common/text/json_read.h"

namespace tutti::data {

bool is_video_field(std::string_view name);

// True for a field whose cell in a CSV file is a number.
bool is_video_number(std::string_view name);

// Empty, or why the cell cannot be sent. Null is refused where the API has no null: the reference
// client fails each such request, which is better known before the run.
std::string check_video_cell(std::string_view name, const text::JsonValue& cell);

// Appends the body. The row was checked field by field.
void render_video(const text::JsonValue& cells, std::string& out);

}  // namespace tutti::data
