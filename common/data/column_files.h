#pragma once

// Parquet files and folders that Hugging Face's save_to_disk wrote (Arrow streams), row by row,
// only the wanted columns, through the Rust library: without it they are refused in words that say
// what to install. Internal to this folder. Single-threaded.

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/data/row_source.h"

namespace tutti::data {

// Rows of the files, one file after another; a row's place is its number over all, from 1.
void read_column_files(const std::vector<std::string>& paths, const RowCallbacks& callbacks);

// The Arrow files of a folder, in order: of its split `train` when it holds several splits, else
// of the folder itself. Errors name what is missing and, for another split, the folder to give.
base::Result<std::vector<std::string>> arrow_files(const std::string& folder);

}  // namespace tutti::data
