#include "cli/editor/key_input.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/utf8.h"
#include "cli/flags/interrupt.h"

namespace lockstep {
namespace {

constexpr int kSizeLookMs = 250;
constexpr char kCtrlC = '\x03';
constexpr std::string_view kPasteEnd = "\x1b[201~";

}  // namespace

std::optional<char> KeyInput::next_byte(const std::function<void()>& on_resize) {
  while (pending_.empty()) {
    // A signal, or a key pressed before raw mode.
    if (InterruptGuard::is_interrupted()) {
      InterruptGuard::forget();
      return kCtrlC;
    }
    winsize size{};
    if (on_resize && ::ioctl(fd_, TIOCGWINSZ, &size) == 0) {
      const bool is_other = columns_ != 0 && (columns_ != size.ws_col || rows_ != size.ws_row);
      columns_ = size.ws_col;
      rows_ = size.ws_row;
      if (is_other) on_resize();
    }
    pollfd wait{fd_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kSizeLookMs);
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(fd_, buffer, sizeof(buffer));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return std::nullopt;
    pending_.assign(buffer, static_cast<size_t>(got));
  }
  const char byte = pending_.front();
  pending_.erase(0, 1);
  return byte;
}

std::optional<uint32_t> KeyInput::next(const std::function<void()>& on_resize) {
  constexpr uint32_t kReplacement = 0xfffd;
  std::string bytes;
  while (true) {
    const auto byte = next_byte(on_resize);
    if (!byte) return std::nullopt;
    bytes += *byte;
    const Utf8Character character = first_utf8_character(bytes);
    if (character.state == Utf8State::kIncomplete) continue;
    const bool is_valid = character.state == Utf8State::kValid;
    // The byte that showed that the ones before it are invalid is read again.
    if (!is_valid && bytes.size() > character.bytes) pending_.insert(0, 1, bytes.back());
    return is_valid ? character.code_point : kReplacement;
  }
}

std::string KeyInput::read_paste(size_t bytes_max) {
  std::string text;
  std::string last;  // as many bytes as the mark has
  while (const auto byte = next_byte(nullptr)) {
    if (text.size() < bytes_max) text += *byte;
    last += *byte;
    if (last.size() > kPasteEnd.size()) last.erase(0, 1);
    if (last == kPasteEnd) break;
  }
  if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
  return cleaned_paste(text);
}

std::string cleaned_paste(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') continue;
      clean += '\n';
    } else if (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f)) {
      clean += text[i];
    }
  }
  return replace_invalid_utf8(clean);
}

std::string completion_of_word(std::string_view word, const std::vector<std::string>& found) {
  if (found.empty()) return "";
  std::string common = found.front();
  for (const std::string& one : found) {
    const auto differs = std::mismatch(common.begin(), common.end(), one.begin(), one.end());
    common.erase(differs.first, common.end());
  }
  if (!common.starts_with(word)) return "";
  std::string rest = common.substr(word.size());
  rest.resize(rest.size() - incomplete_utf8_tail(rest));
  if (found.size() == 1 && !rest.ends_with('/')) rest += ' ';
  return rest;
}

}  // namespace lockstep
