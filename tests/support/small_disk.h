#pragma once

// SmallDisk: a tmpfs of a few pages at a folder, seen by this process and its children only (a
// mount namespace of its own). For what a full disk does. Needs root. Header only; one thread, and
// a process without any other.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

namespace tutti::testing_support {

class SmallDisk {
 public:
  // Why there can be none here; empty: there can.
  static std::string missing() {
    if (geteuid() != 0) {
      return "needs root: mount namespaces";
    }
    const pid_t child = fork();  // the question must not move us
    if (child == 0) {
      _exit(own_mounts() && mount("small", "/tmp", "tmpfs", 0, "size=64k") == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ""
                                                         : "this system mounts no tmpfs for us";
  }

  // `bytes` are rounded up to whole pages of 4096.
  SmallDisk(std::string folder, std::size_t bytes) : folder_(std::move(folder)) {
    static const bool own = own_mounts();
    std::filesystem::create_directories(folder_);
    EXPECT_TRUE(own && mount("small", folder_.c_str(), "tmpfs", 0,
                             fmt::format("size={}", bytes).c_str()) == 0);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() { umount2(folder_.c_str(), MNT_DETACH); }

  const std::string& folder() const { return folder_; }
  // Takes all the room that is left but for `bytes`.
  void fill(std::size_t leave) const {
    const auto room = std::filesystem::space(folder_).available;
    if (room > leave) {
      EXPECT_EQ(std::system(
                    fmt::format("head -c {} /dev/zero >{}/filler", room - leave, folder_).c_str()),
                0);
    }
  }

 private:
  static bool own_mounts() {
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }

  std::string folder_;
};

}  // namespace tutti::testing_support
