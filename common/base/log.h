#pragma once

// Log lines for cold paths, in the reference client's form on stdout:
//   2026-10-02 10:00:00,123 - tutti.conduct - INFO - text
// spdlog hides behind this header (compile cost). Nothing between due and record may call it.

#include <string>
#include <string_view>

namespace tutti::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Once, in main. `name` is the process ("tutti", "tutti-agent", "tutti-mock").
void start_log(std::string_view name, LogLevel least);
void log_line(LogLevel level, std::string_view part, std::string_view text);

inline void log_debug(std::string_view part, std::string_view text) {
  log_line(LogLevel::kDebug, part, text);
}
inline void log_info(std::string_view part, std::string_view text) {
  log_line(LogLevel::kInfo, part, text);
}
inline void log_warning(std::string_view part, std::string_view text) {
  log_line(LogLevel::kWarning, part, text);
}
inline void log_error(std::string_view part, std::string_view text) {
  log_line(LogLevel::kError, part, text);
}

// While a live view owns the terminal, lines are handed to it instead of stdout; null gives stdout
// back.
void redirect_log(void (*sink)(void* context, const std::string& line), void* context);

}  // namespace tutti::base
