#pragma once

// AtomicFile: a file that appears whole or not at all. Bytes go to a temporary name in the same
// folder; commit() writes them out, syncs file and folder, and renames. Without commit() the
// temporary is removed. One owner.

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace tutti::report {

class AtomicFile {
 public:
  // `path`'s folder is created when it is not there.
  static base::Result<AtomicFile> create(const std::string& path);

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Write errors are kept and reported by commit().
  void append(std::string_view bytes);
  // `to_disk`: waits until a crash of this host cannot take it away.
  base::Status commit(bool to_disk = true);

 private:
  AtomicFile(int fd, std::string path, std::string temporary);
  void flush();

  int fd_ = -1;
  std::string path_;
  std::string temporary_;
  std::string pending_;
  int error_ = 0;  // errno of the first failed write
};

base::Status write_atomically(const std::string& path, std::string_view bytes);

// The same without waiting for the disk: readers see it whole or not at all, a crash of this host
// may leave the file before it. For what is written anew all the time by a loop that must not stop.
base::Status replace_quickly(const std::string& path, std::string_view bytes);

}  // namespace tutti::report
