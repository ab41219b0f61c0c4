#pragma once

// Data sets of Hugging Face's hub, by path:  hf://datasets/ORG/NAME[@REVISION][/FILE or /FOLDER]
// Of a folder, or the whole, its Parquet files are taken, else the one text file that it has; where
// files of several splits are there, those of `train`. What is left must be of one folder, for two
// folders are two data sets. An error names what there is to choose from.

#include <string>
#include <vector>

#include "common/base/result.h"

namespace tutti::data {

bool is_hub_path(const std::string& path);

// The files on this host, fetched into the hub's cache where they are not there. Blocking.
base::Result<std::vector<std::string>> fetch_hub_files(const std::string& path);

struct HubPath {
  std::string repository;
  std::string revision = "main";
  std::string inside;  // file or folder; empty: the whole
};

base::Result<HubPath> read_hub_path(const std::string& path);

// Of the files of a repository those that `inside` means, in order.
base::Result<std::vector<std::string>> choose_hub_files(const std::vector<std::string>& files,
                                                        const std::string& inside);

}  // namespace tutti::data
