#include "common/wire/curve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/check.h"

namespace tutti::wire {
namespace {

constexpr std::size_t kKeyChars = 40;
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

auto refuse(std::string message) { return base::fail(base::ExitCode::kSetup, std::move(message)); }

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

base::Status write_new(const std::string& path, mode_t mode, std::string_view text) {
  const OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.fd() < 0) {
    return refuse(fmt::format("{}: cannot create the key file: {}{}", path, std::strerror(errno),
                              errno == EEXIST ? "; remove it first or choose another name" : ""));
  }
  const auto size = static_cast<ssize_t>(text.size());
  if (::write(file.fd(), text.data(), text.size()) != size || ::fsync(file.fd()) != 0) {
    return refuse(fmt::format("{}: cannot write the key file: {}", path, std::strerror(errno)));
  }
  return {};
}

// `secret`: the mode is judged on the open file, so that it is the mode of what is read.
base::Result<std::string> read_file(const std::string& path, bool secret) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) {
    return refuse(fmt::format("{}: cannot read the key file: {}", path, std::strerror(errno)));
  }
  struct stat facts {};
  if (::fstat(file.fd(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return refuse(fmt::format("{}: not a regular file", path));
  }
  if (secret && (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refuse(fmt::format("{}: mode {:04o} lets others use the secret key; run: chmod 600 {}",
                              path, facts.st_mode & 07777U, path));
  }
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.fd(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return refuse(fmt::format("{}: cannot read the key file: {}", path, std::strerror(errno)));
    }
    if (got == 0) {
      text.resize(length);
      return text;
    }
    length += static_cast<std::size_t>(got);
  }
  return refuse(fmt::format("{}: larger than {} bytes, no key file", path, kFileBytesMax));
}

// Splits off the first line, then words.
std::string_view take_until(std::string_view& text, std::string_view stops) {
  const std::size_t end = text.find_first_of(stops);
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

struct Line {
  std::string_view word;
  std::string_view key;
};

std::optional<Line> line_of(std::string_view line) {
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (line.empty() || line.starts_with("//")) {
    return std::nullopt;
  }
  const std::string_view word = take_until(line, " \t");
  return Line{word, take_until(line, " \t")};
}

}  // namespace

bool is_key(std::string_view text) {
  if (text.size() != kKeyChars) {
    return false;
  }
  std::array<std::uint8_t, kKeyBytes> bytes{};
  return zmq_z85_decode(bytes.data(), std::string(text).c_str()) != nullptr;
}

KeyPair fresh_key_pair() {
  std::array<char, kKeyChars + 1> public_key{};
  std::array<char, kKeyChars + 1> secret_key{};
  TUTTI_CHECK(zmq_curve_keypair(public_key.data(), secret_key.data()) == 0);
  return {public_key.data(), secret_key.data()};
}

base::Status write_key_pair(const std::string& path, const KeyPair& pair) {
  const std::string line = fmt::format("public {}\n", pair.public_key);
  const std::string both = fmt::format(
      "// tutti key pair. Keep this file to yourself; give {}.pub to the other side.\n{}secret "
      "{}\n",
      path, line, pair.secret_key);
  if (auto written = write_new(path, S_IRUSR | S_IWUSR, both); !written) {
    return written;
  }
  return write_new(path + ".pub", S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, line);
}

base::Result<KeyPair> read_key_pair(const std::string& path) {
  auto text = read_file(path, true);
  if (!text) {
    return tl::unexpected(text.error());
  }
  KeyPair pair;
  for (std::string_view rest = *text; !rest.empty();) {
    const auto line = line_of(take_until(rest, "\n"));
    if (line && line->word == "public") {
      pair.public_key = line->key;
    } else if (line && line->word == "secret") {
      pair.secret_key = line->key;
    }
  }
  if (!is_key(pair.public_key) || !is_key(pair.secret_key)) {
    return refuse(fmt::format("{}: no key pair in it; make one with: tutti keys", path));
  }
  std::array<char, kKeyChars + 1> derived{};
  if (zmq_curve_public(derived.data(), pair.secret_key.c_str()) != 0 ||
      pair.public_key != derived.data()) {
    return refuse(fmt::format("{}: its public and secret key are not of one pair", path));
  }
  return pair;
}

base::Result<std::vector<std::string>> read_public_keys(const std::string& path) {
  auto text = read_file(path, false);
  if (!text) {
    return tl::unexpected(text.error());
  }
  std::vector<std::string> keys;
  std::string bad;
  std::size_t number = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    ++number;
    const auto line = line_of(take_until(rest, "\n"));
    if (!line) {
      continue;
    }
    if (line->word == "public" && is_key(line->key)) {
      keys.emplace_back(line->key);
    } else {
      bad += fmt::format("{}{}", bad.empty() ? "" : ", ", number);
    }
  }
  if (!bad.empty()) {
    return refuse(fmt::format("{}: not \"public KEY\" in line {}", path, bad));
  }
  if (keys.empty()) {
    return refuse(fmt::format("{}: no public key in it", path));
  }
  return keys;
}

}  // namespace tutti::wire
