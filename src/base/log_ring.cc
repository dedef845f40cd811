#include "base/log_ring.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "base/utf8.h"

namespace lockstep {
namespace {

constexpr size_t kSecretBytesMin = 8;
constexpr std::string_view kHidden = "***";

// Without destructors: threads may log while the process ends.
struct KeptLine {
  int64_t at_ms;
  LogLevel level;
  size_t bytes;
  char text[kLogLineBytesKept];
};
struct Secret {
  size_t bytes;
  char text[kLogSecretBytesMax];

  std::string_view view() const { return {text, bytes}; }
};

struct Ring {
  std::mutex mutex;  // guards what follows
  uint64_t last = 0;
  std::array<KeptLine, kLogLinesKept> lines{};  // line n at n % kLogLinesKept
  size_t secret_count = 0;
  std::array<Secret, kLogSecretsMax> secrets{};
};

constinit Ring ring;

}  // namespace

std::string_view log_level_name(LogLevel level) {
  constexpr std::string_view kNames[] = {"info", "warn", "error"};
  return kNames[static_cast<int>(level)];
}

void keep_log_line(LogLevel level, int64_t at_ms, std::string_view text) {
  const std::lock_guard lock(ring.mutex);
  KeptLine& line = ring.lines[++ring.last % kLogLinesKept];
  line.at_ms = at_ms;
  line.level = level;
  line.bytes = std::min(text.size(), kLogLineBytesKept);
  std::memcpy(line.text, text.data(), line.bytes);
}

std::vector<LogLine> log_lines_after(uint64_t number, size_t lines_max) {
  std::vector<LogLine> lines;
  const std::lock_guard lock(ring.mutex);
  const uint64_t oldest = ring.last < kLogLinesKept ? 1 : ring.last - kLogLinesKept + 1;
  uint64_t next = number > ring.last ? oldest : std::max(oldest, number + 1);
  for (; next <= ring.last && lines.size() < lines_max; ++next) {
    const KeptLine& line = ring.lines[next % kLogLinesKept];
    std::string text = replace_invalid_utf8(std::string_view(line.text, line.bytes));
    std::replace(text.begin(), text.end(), '\n', ' ');
    lines.push_back({next, line.at_ms, line.level, std::move(text)});
  }
  return lines;
}

void keep_out_of_log(std::string_view secret) {
  if (secret.size() < kSecretBytesMin || secret.size() > kLogSecretBytesMax) return;
  const std::lock_guard lock(ring.mutex);
  const bool is_known = std::any_of(ring.secrets.begin(), ring.secrets.end(),
                                    [&](const Secret& one) { return one.view() == secret; });
  if (is_known) return;
  Secret& kept = ring.secrets[ring.secret_count++ % kLogSecretsMax];
  kept.bytes = secret.size();
  std::memcpy(kept.text, secret.data(), secret.size());
}

std::string without_secrets(std::string_view text) {
  std::string hidden(text);
  const std::lock_guard lock(ring.mutex);
  for (const Secret& one : ring.secrets) {
    const std::string_view secret = one.view();
    if (secret.empty()) continue;
    for (size_t at = 0; (at = hidden.find(secret, at)) != std::string::npos;) {
      hidden.replace(at, secret.size(), kHidden);
      at += kHidden.size();
    }
  }
  return hidden;
}

}  // namespace lockstep
