#include "common/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <mutex>

namespace tutti::base {
namespace {

struct Redirect {
  void (*sink)(void*, const std::string&) = nullptr;
  void* context = nullptr;
};

// Writes whole lines and flushes each: a launcher that tails our output must see them at once.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void redirect(Redirect to) {
    const std::lock_guard<std::mutex> lock(mutex_);
    redirect_ = to;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    const std::string line(buffer.data(), buffer.size());
    if (redirect_.sink != nullptr) {
      redirect_.sink(redirect_.context, line);
      return;
    }
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }
  void flush_() override { std::fflush(stdout); }

 private:
  Redirect redirect_;
};

std::shared_ptr<LineSink>& line_sink() {
  static auto sink = std::make_shared<LineSink>();
  return sink;
}

struct Log {
  std::string name = "tutti";
  std::shared_ptr<spdlog::logger> logger;
};

Log& the_log() {
  static Log log;
  return log;
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

const char* word_of(LogLevel level) {
  static constexpr const char* kWords[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  return kWords[static_cast<int>(level)];
}

}  // namespace

void start_log(std::string_view name, LogLevel least) {
  auto logger = std::make_shared<spdlog::logger>("tutti", line_sink());
  logger->set_pattern("%Y-%m-%d %H:%M:%S,%e - %v");
  logger->set_level(level_of(least));
  the_log().name = std::string(name);
  the_log().logger = std::move(logger);
}

void log_line(LogLevel level, std::string_view part, std::string_view text) {
  Log& log = the_log();
  if (log.logger == nullptr) {
    return;  // tests that never start a log stay silent
  }
  log.logger->log(level_of(level), "{}.{} - {} - {}", log.name, part, word_of(level), text);
}

void redirect_log(void (*sink)(void*, const std::string&), void* context) {
  line_sink()->redirect(Redirect{sink, context});
}

}  // namespace tutti::base
