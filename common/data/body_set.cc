#include "common/data/body_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/id.h"
#include "common/data/request_body.h"

namespace tutti::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the file form is little-endian");

constexpr std::array<char, 8> kMagic{'T', 'U', 'T', 'T', 'I', 'B', 'O', 'D'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kRowsMax = kDatasetRowsMax;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 40;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t zero = 0;
  std::uint64_t rows = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t hash_high = 0;
  std::uint64_t hash_low = 0;
  std::uint64_t zero_too = 0;
};
static_assert(sizeof(Header) == 64);

struct Entry {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::int32_t splice = kNoSplice;
};
static_assert(sizeof(Entry) == 16);

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

bool splice_fits(std::string_view body, std::int32_t splice) {
  return splice == kNoSplice || (splice > 0 && static_cast<std::size_t>(splice) < body.size() &&
                                 body[static_cast<std::size_t>(splice) - 1] == '"');
}

class Hash {
 public:
  Hash() : state_(XXH3_createState()) {
    TUTTI_CHECK(state_ != nullptr);
    XXH3_128bits_reset(state_);
  }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  ~Hash() { XXH3_freeState(state_); }

  void add(const void* bytes, std::size_t size) { XXH3_128bits_update(state_, bytes, size); }
  XXH128_hash_t digest() const { return XXH3_128bits_digest(state_); }

 private:
  XXH3_state_t* state_;
};

std::string hex(std::uint64_t high, std::uint64_t low) {
  return fmt::format("{:016x}{:016x}", high, low);
}

tl::unexpected<base::Error> broken(std::string_view what) {
  return base::fail(base::ExitCode::kSetup,
                    fmt::format("body set: {}; the file is damaged or not a body set, remove it "
                                "and it will be sent again",
                                what));
}

Entry entry_at(const char* index, std::uint64_t i) {
  Entry entry;
  std::memcpy(&entry, index + i * sizeof(Entry), sizeof(Entry));
  return entry;
}

// Null: every row lies where it must. Bodies follow each other without gap or overlap.
const char* check_rows(std::string_view file, const Header& header) {
  std::uint64_t next = sizeof(Header);
  const std::uint64_t end = sizeof(Header) + header.body_bytes;
  const char* const index = file.data() + header.index_offset;
  for (std::uint64_t i = 0; i < header.rows; ++i) {
    const Entry entry = entry_at(index, i);
    if (entry.offset != next || entry.length == 0 || entry.length > kBodyBytesMax ||
        entry.length > end - next) {
      return "a row lies outside the bodies";
    }
    next += entry.length;
    if (!splice_fits(file.substr(entry.offset, entry.length), entry.splice)) {
      return "a splice point lies outside its prompt";
    }
  }
  return next == end ? nullptr : "bytes between the bodies and the index";
}

const char* check_header(std::string_view file, const Header& header) {
  if (header.magic != kMagic) {
    return "no body set";
  }
  if (header.version != kVersion) {
    return "unknown version";
  }
  if (header.zero != 0 || header.zero_too != 0 || header.rows > kRowsMax ||
      header.body_bytes > kFileBytesMax) {
    return "impossible header";
  }
  if (header.index_offset != sizeof(Header) + padded(header.body_bytes) ||
      file.size() != header.index_offset + header.rows * sizeof(Entry)) {
    return "the sizes do not add up (cut off?)";
  }
  for (std::uint64_t i = sizeof(Header) + header.body_bytes; i < header.index_offset; ++i) {
    if (file[i] != '\0') {
      return "padding is not zero";
    }
  }
  return nullptr;
}

}  // namespace

// The file being written. Removed unless finish() gave it its name.
struct BodySetWriter::Out {
  std::string path;
  std::string draft_path;
  std::FILE* file = nullptr;
  std::vector<Entry> index;
  std::uint64_t body_bytes = 0;
  Hash hash;

  Out() = default;
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() {
    if (file != nullptr) {
      static_cast<void>(std::fclose(file));
      static_cast<void>(::unlink(draft_path.c_str()));
    }
  }

  base::Status write(const void* bytes, std::size_t size) {
    if (size != 0 && std::fwrite(bytes, 1, size, file) != size) {
      return failed();
    }
    return {};
  }

  tl::unexpected<base::Error> failed() const {
    return base::fail(base::ExitCode::kExecution,
                      fmt::format("{}: cannot write the request bodies: {}; free space or choose "
                                  "another directory",
                                  draft_path, std::strerror(errno)));
  }
};

BodySetWriter::BodySetWriter(std::unique_ptr<Out> out) : out_(std::move(out)) {}
BodySetWriter::BodySetWriter(BodySetWriter&&) noexcept = default;
BodySetWriter& BodySetWriter::operator=(BodySetWriter&&) noexcept = default;
BodySetWriter::~BodySetWriter() = default;

base::Result<BodySetWriter> BodySetWriter::create(const std::string& path) {
  auto out = std::make_unique<Out>();
  out->path = path;
  out->draft_path = base::draft_path(path);
  out->file = std::fopen(out->draft_path.c_str(), "wbx");
  if (out->file == nullptr) {
    return out->failed();
  }
  const Header empty;
  if (auto written = out->write(&empty, sizeof(empty)); !written) {
    return tl::unexpected<base::Error>(written.error());
  }
  return BodySetWriter(std::move(out));
}

base::Status BodySetWriter::add(std::string_view body, std::int32_t splice) {
  if (body.empty() || body.size() > kBodyBytesMax || !splice_fits(body, splice)) {
    return base::fail(
        base::ExitCode::kInput,
        fmt::format("row {}: a request body of {} bytes (splice {}) cannot be used; a "
                    "body has 1 to {} bytes",
                    out_->index.size(), body.size(), splice, kBodyBytesMax));
  }
  if (out_->index.size() == kRowsMax || out_->body_bytes + body.size() > kFileBytesMax) {
    return base::fail(base::ExitCode::kInput, "too many request bodies; take fewer samples");
  }
  out_->index.push_back(
      {sizeof(Header) + out_->body_bytes, static_cast<std::uint32_t>(body.size()), splice});
  out_->body_bytes += body.size();
  out_->hash.add(body.data(), body.size());
  return out_->write(body.data(), body.size());
}

base::Result<BodySetInfo> BodySetWriter::finish() {
  Out& out = *out_;
  Header header;
  header.rows = out.index.size();
  header.body_bytes = out.body_bytes;
  header.index_offset = sizeof(Header) + padded(out.body_bytes);
  const std::size_t index_bytes = out.index.size() * sizeof(Entry);
  out.hash.add(out.index.data(), index_bytes);
  const XXH128_hash_t digest = out.hash.digest();
  header.hash_high = digest.high64;
  header.hash_low = digest.low64;
  const std::array<char, 8> zeros{};
  base::Status written = out.write(zeros.data(), padded(out.body_bytes) - out.body_bytes);
  written = written ? out.write(out.index.data(), index_bytes) : written;
  if (written && std::fseek(out.file, 0, SEEK_SET) != 0) {
    return out.failed();
  }
  written = written ? out.write(&header, sizeof(header)) : written;
  if (!written) {
    return tl::unexpected<base::Error>(written.error());
  }
  if (std::fflush(out.file) != 0 || ::fsync(::fileno(out.file)) != 0 ||
      std::rename(out.draft_path.c_str(), out.path.c_str()) != 0) {
    return out.failed();
  }
  static_cast<void>(std::fclose(std::exchange(out.file, nullptr)));
  return BodySetInfo{hex(header.hash_high, header.hash_low), header.rows,
                     header.index_offset + index_bytes};
}

base::Result<BodySet> BodySet::over(std::string_view file) {
  if (file.size() < sizeof(Header)) {
    return broken("shorter than its header");
  }
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  const char* wrong = check_header(file, header);
  wrong = wrong == nullptr ? check_rows(file, header) : wrong;
  if (wrong != nullptr) {
    return broken(wrong);
  }
  Hash hash;
  hash.add(file.data() + sizeof(Header), header.body_bytes);
  hash.add(file.data() + header.index_offset, header.rows * sizeof(Entry));
  const XXH128_hash_t digest = hash.digest();
  if (digest.high64 != header.hash_high || digest.low64 != header.hash_low) {
    return broken("the content does not match its hash");
  }
  BodySet set;
  set.file_ = file;
  set.index_ = file.data() + header.index_offset;
  set.rows_ = header.rows;
  set.hash_ = hex(header.hash_high, header.hash_low);
  return set;
}

base::Result<BodySet> BodySet::open(const std::string& path, std::string_view expected_hash) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  }
  struct stat status {};
  void* bytes = MAP_FAILED;
  std::size_t size = 0;
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    size = static_cast<std::size_t>(status.st_size);
    bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  static_cast<void>(::close(fd));
  if (bytes == MAP_FAILED) {
    return base::fail(base::ExitCode::kSetup,
                      fmt::format("{}: an empty file, or one that cannot be mapped", path));
  }
  auto set = over(std::string_view(static_cast<const char*>(bytes), size));
  if (!set || (!expected_hash.empty() && set->hash() != expected_hash)) {
    static_cast<void>(::munmap(bytes, size));
    return base::fail(
        base::ExitCode::kSetup,
        fmt::format("{}: {}", path, set ? "other content than asked for" : set.error().message));
  }
  set->mapped_ = true;
  return set;
}

BodySet::BodySet(BodySet&& other) noexcept { *this = std::move(other); }

BodySet& BodySet::operator=(BodySet&& other) noexcept {
  if (this != &other) {
    std::swap(file_, other.file_);
    std::swap(index_, other.index_);
    std::swap(rows_, other.rows_);
    std::swap(hash_, other.hash_);
    std::swap(mapped_, other.mapped_);
  }
  return *this;
}

BodySet::~BodySet() {
  if (mapped_) {
    // const_cast only because munmap's parameter is not const.
    static_cast<void>(::munmap(const_cast<char*>(file_.data()), file_.size()));
  }
}

BodyRow BodySet::row(std::uint64_t i) const {
  TUTTI_CHECK(i < rows_);
  const Entry entry = entry_at(index_, i);
  return {std::string_view(file_.data() + entry.offset, entry.length), entry.splice};
}

}  // namespace tutti::data
