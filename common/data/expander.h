#pragma once

// Expander: the text inside gzip or zstd bytes that come in pieces cut anywhere; other bytes pass
// as they are. Which of the three it is, the first four bytes decide: no text starts like a
// compressed file. Members and frames may follow each other. Memory is bounded by a window of
// kWindowBytesMax and one block; a file that expands to more than kRatioMax times its size is
// refused as a bomb once it is past kUncheckedBytes. Internal to this folder. One owner.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tutti::data {

enum class Packing : std::uint8_t { kUnknown, kNone, kGzip, kZstd };

inline constexpr int kWindowLogMax = 27;  // what `zstd --ultra -22` writes without --long
inline constexpr std::uint64_t kUncheckedBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kRatioMax = 2000;  // gzip cannot do more than 1,032

class Expander {
 public:
  // A block of text; false: enough.
  using Sink = std::function<bool(std::string_view text)>;

  // `unchecked_bytes`: kUncheckedBytes, or less in tests.
  explicit Expander(std::uint64_t unchecked_bytes = kUncheckedBytes);
  ~Expander();
  Expander(const Expander&) = delete;
  Expander& operator=(const Expander&) = delete;

  // False: an error (see error()) or the sink had enough; then feed nothing more.
  bool feed(std::string_view bytes, const Sink& sink);
  // No bytes are left; false: the sink had enough, or the file was cut (see error()).
  bool finish(const Sink& sink);

  // Empty: none.
  const std::string& error() const { return error_; }
  Packing packing() const { return packing_; }

 private:
  struct Gzip;
  struct Zstd;

  bool begin(std::string_view start, const Sink& sink);
  bool expand(std::string_view bytes, const Sink& sink);
  bool expand_gzip(std::string_view bytes, const Sink& sink);
  bool expand_zstd(std::string_view bytes, const Sink& sink);
  bool hand_on(std::size_t size, const Sink& sink);
  bool frame_is_whole();
  bool fail(std::string reason);

  std::uint64_t unchecked_bytes_;
  Packing packing_ = Packing::kUnknown;
  std::string start_;  // until the packing is known
  std::string error_;
  std::string block_;
  std::unique_ptr<Gzip> gzip_;
  std::unique_ptr<Zstd> zstd_;
  bool open_ = false;            // inside a member or frame
  std::string frame_start_;      // its first bytes, which say how much it expands to …
  std::uint64_t frame_out_ = 0;  // … and how much it was
  bool padding_ = false;         // zeros after the last gzip member
  std::uint64_t in_ = 0;
  std::uint64_t out_ = 0;
};

}  // namespace tutti::data
