#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>

#include "base/log_ring.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

std::atomic<bool> as_json{false};

std::string time_text(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, ms);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : replace_invalid_utf8(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void set_log_json(bool json) {
  as_json.store(json, std::memory_order_relaxed);
}

void write_log(LogLevel level, std::string_view message) {
  const auto name = log_level_name(level);
  const auto now = std::chrono::system_clock::now();
  const std::string told = without_secrets(message);
  const std::string line =
      as_json.load(std::memory_order_relaxed)
          ? fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":\"{}\"}}\n", time_text(now),
                        name, escaped(told))
          : fmt::format("{} {:5} {}\n", time_text(now), name, told);
  keep_log_line(level, now.time_since_epoch() / std::chrono::milliseconds(1), told);
  // A log line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace lockstep
