#include "common/data/expander.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>

#include "common/base/check.h"

namespace tutti::data {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kFrameHeaderBytesMax = 18;
constexpr int kGzipWindow = 15 + 16;  // zlib's way of saying: gzip framing only

bool is_zstd(std::string_view start) {
  if (start.size() < kMagicBytes) {
    return false;
  }
  const bool frame = start.substr(0, 4) == "\x28\xB5\x2F\xFD";
  const bool skippable = (static_cast<unsigned char>(start[0]) & 0xF0U) == 0x50U &&
                         start.substr(1, 3) == "\x2A\x4D\x18";
  return frame || skippable;
}

}  // namespace

struct Expander::Gzip {
  z_stream stream{};
  Gzip() { TUTTI_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { static_cast<void>(inflateEnd(&stream)); }
};

struct Expander::Zstd {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  Zstd() {
    TUTTI_CHECK(context != nullptr);
    static_cast<void>(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kWindowLogMax));
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() { static_cast<void>(ZSTD_freeDCtx(context)); }
};

Expander::Expander(std::uint64_t unchecked_bytes) : unchecked_bytes_(unchecked_bytes) {}
Expander::~Expander() = default;

bool Expander::fail(std::string reason) {
  error_ = std::move(reason);
  return false;
}

bool Expander::feed(std::string_view bytes, const Sink& sink) {
  if (packing_ != Packing::kUnknown) {
    return expand(bytes, sink);
  }
  start_.append(bytes);
  return start_.size() < kMagicBytes || begin(start_, sink);
}

bool Expander::finish(const Sink& sink) {
  if (packing_ == Packing::kUnknown && !start_.empty() && !begin(start_, sink)) {
    return false;
  }
  return !open_ || fail(fmt::format("the {} data ends too early: the file was cut; get it again",
                                    packing_ == Packing::kGzip ? "gzip" : "zstd"));
}

bool Expander::begin(std::string_view start, const Sink& sink) {
  packing_ = Packing::kNone;
  if (start.substr(0, 2) == "\x1F\x8B") {
    packing_ = Packing::kGzip;
    gzip_ = std::make_unique<Gzip>();
  } else if (is_zstd(start)) {
    packing_ = Packing::kZstd;
    zstd_ = std::make_unique<Zstd>();
  }
  if (packing_ != Packing::kNone) {
    block_.resize(kBlockBytes);
  }
  return expand(start, sink);
}

bool Expander::expand(std::string_view bytes, const Sink& sink) {
  in_ += bytes.size();
  switch (packing_) {
    case Packing::kGzip:
      return expand_gzip(bytes, sink);
    case Packing::kZstd:
      return expand_zstd(bytes, sink);
    default:
      return bytes.empty() || sink(bytes);
  }
}

bool Expander::hand_on(std::size_t size, const Sink& sink) {
  out_ += size;
  if (out_ > unchecked_bytes_ && out_ / kRatioMax > in_) {
    return fail(fmt::format("expands to more than {} times its size, as no data set does: refused",
                            kRatioMax));
  }
  return size == 0 || sink(std::string_view(block_.data(), size));
}

bool Expander::expand_gzip(std::string_view bytes, const Sink& sink) {
  z_stream& stream = gzip_->stream;
  // zlib's interface predates const; it does not write there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  bool full = false;  // the last call filled its block: more may come without further input
  while (stream.avail_in > 0 || full) {
    if (!open_ && stream.avail_in > 0) {
      // Tapes and block devices pad with zeros; nothing may follow those.
      padding_ = padding_ || *stream.next_in == 0;
      if (padding_) {
        if (*stream.next_in != 0) {
          return fail("bytes follow the padding after the gzip data");
        }
        ++stream.next_in;
        --stream.avail_in;
        full = false;
        continue;
      }
      static_cast<void>(inflateReset(&stream));
      open_ = true;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block_.data());
    stream.avail_out = static_cast<uInt>(block_.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return fail(fmt::format("not valid gzip data: {}",
                              stream.msg != nullptr ? stream.msg : "the file is damaged"));
    }
    if (!hand_on(block_.size() - stream.avail_out, sink)) {
      return false;
    }
    open_ = result != Z_STREAM_END;
    full = open_ && stream.avail_out == 0;
  }
  return true;
}

// libzstd takes a streamed frame that expands to less than it says for a good one.
bool Expander::frame_is_whole() {
  const unsigned long long says =
      ZSTD_getFrameContentSize(frame_start_.data(), frame_start_.size());
  return says == ZSTD_CONTENTSIZE_UNKNOWN || says == frame_out_ ||
         fail(fmt::format("not valid zstd data: a frame of {} bytes says that it has {}",
                          frame_out_, says));
}

bool Expander::expand_zstd(std::string_view bytes, const Sink& sink) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  bool full = false;
  while (in.pos < bytes.size() || full) {
    if (!open_) {
      frame_start_.clear();
      frame_out_ = 0;
    }
    // A frame that it sees whole libzstd judges by other rules; so it sees the first byte alone.
    in.size = open_ ? bytes.size() : in.pos + 1;
    const std::size_t from = in.pos;
    ZSTD_outBuffer out{block_.data(), block_.size(), 0};
    const std::size_t result = ZSTD_decompressStream(zstd_->context, &out, &in);
    if (ZSTD_isError(result) != 0U) {
      const bool window = ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge;
      return fail(fmt::format("not valid zstd data: {}{}", ZSTD_getErrorName(result),
                              window ? "; compress it again without --long" : ""));
    }
    frame_start_.append(
        bytes.substr(from, std::min(in.pos - from, kFrameHeaderBytesMax - frame_start_.size())));
    frame_out_ += out.pos;
    if (!hand_on(out.pos, sink)) {
      return false;
    }
    open_ = result != 0;
    if (!open_ && !frame_is_whole()) {
      return false;
    }
    full = open_ && out.pos == out.size;
  }
  return true;
}

}  // namespace tutti::data
