// Log lines of the control plane, to stderr. The data plane logs nothing.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace lockstep {

enum class LogLevel { kInfo, kWarn, kError };

void set_log_json(bool json);
void write_log(LogLevel level, std::string_view message);  // any thread; one write() per line

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
