#include "cli/top/top_state.h"

#include <algorithm>
#include <utility>

#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"
#include "cli/text/terminal_text.h"
#include "cli/top/top_rows.h"

namespace lockstep {
namespace {

constexpr int kPageRows = 10;
constexpr size_t kInputBytesMax = 512;

struct KeySequence {
  std::string_view bytes;
  TopKey::Kind kind;
};

// As xterm and its likes send them, in normal and application mode.
constexpr KeySequence kKeySequences[] = {
    {"\x1b[A", TopKey::Kind::kUp},      {"\x1bOA", TopKey::Kind::kUp},
    {"\x1b[B", TopKey::Kind::kDown},    {"\x1bOB", TopKey::Kind::kDown},
    {"\x1b[5~", TopKey::Kind::kPageUp}, {"\x1b[6~", TopKey::Kind::kPageDown},
};

// The length of an escape sequence that is not known: up to its final byte (ECMA-48, 5.4).
size_t sequence_length(std::string_view bytes) {
  if (bytes.size() < 2 || (bytes[1] != '[' && bytes[1] != 'O')) return 1;
  for (size_t i = 2; i < bytes.size(); ++i) {
    if (bytes[i] >= 0x40 && bytes[i] <= 0x7e) return i + 1;
  }
  return bytes.size();
}

}  // namespace

std::vector<TopKey> parse_top_keys(std::string_view bytes) {
  std::vector<TopKey> keys;
  while (!bytes.empty()) {
    const auto* known =
        std::find_if(std::begin(kKeySequences), std::end(kKeySequences),
                     [&](const KeySequence& one) { return bytes.starts_with(one.bytes); });
    if (known != std::end(kKeySequences)) {
      keys.push_back({known->kind, 0});
      bytes.remove_prefix(known->bytes.size());
      continue;
    }
    const char c = bytes[0];
    const size_t length = c == '\x1b' ? sequence_length(bytes) : 1;
    bytes.remove_prefix(length);
    if (c == '\x1b' && length == 1) keys.push_back({TopKey::Kind::kEscape, 0});
    if (c == '\r' || c == '\n') keys.push_back({TopKey::Kind::kEnter, 0});
    if (c == '\x7f' || c == '\b') keys.push_back({TopKey::Kind::kBackspace, 0});
    constexpr char kControlC = 3;
    if (c == kControlC) keys.push_back({TopKey::Kind::kCharacter, 'q'});
    if (c >= 0x20 && c < 0x7f) keys.push_back({TopKey::Kind::kCharacter, c});
  }
  return keys;
}

TopAction TopScreenState::press(const TopKey& key, const TopFacts& facts) {
  told_.clear();
  switch (mode_) {
    case Mode::kText:
      return press_in_text(key);
    case Mode::kAskLoad:
      return press_in_load(key);
    case Mode::kAskUnload: {
      mode_ = Mode::kPanes;
      const bool is_yes = key.character == 'y' || key.character == 'Y';
      if (!is_yes) return {};
      return {TopAction::Kind::kUnload, std::exchange(input_, {})};
    }
    default:
      return press_in_panes(key, facts);
  }
}

TopAction TopScreenState::press_in_panes(const TopKey& key, const TopFacts& facts) {
  switch (key.kind) {
    case TopKey::Kind::kUp:
      move(-1, facts);
      return {};
    case TopKey::Kind::kDown:
      move(1, facts);
      return {};
    case TopKey::Kind::kPageUp:
      move(-kPageRows, facts);
      return {};
    case TopKey::Kind::kPageDown:
      move(kPageRows, facts);
      return {};
    case TopKey::Kind::kEnter:
      mode_ = Mode::kDetail;
      return {};
    case TopKey::Kind::kEscape:
      mode_ = Mode::kPanes;
      return {};
    case TopKey::Kind::kBackspace:
      return {};
    case TopKey::Kind::kCharacter:
      return press_character(key.character, facts);
  }
  return {};
}

TopAction TopScreenState::press_character(char c, const TopFacts& facts) {
  if (c >= '1' && c <= '5') pane_ = static_cast<TopPane>(c - '1');
  if (c == 'k') move(-1, facts);
  if (c == 'j') move(1, facts);
  if (c == 's') is_sorted_ = !is_sorted_;
  if (c == '?') show_text("Keys", top_help_lines());
  if (c == 'p') show_text("PINs", top_pin_lines(facts));
  if (c == 'q') return {TopAction::Kind::kQuit, ""};
  if (c == 'L') return {TopAction::Kind::kLog, ""};
  if (c == 'd') return {TopAction::Kind::kDoctor, ""};
  if (c == 'l') {
    mode_ = Mode::kAskLoad;
    input_.clear();
  }
  if (c == 'u') {
    input_ = pane_ == TopPane::kModels ? top_model_at(facts, selected(), is_sorted_) : "";
    if (input_.empty()) {
      tell("Choose a model first: 2, then the arrow keys.");
    } else {
      mode_ = Mode::kAskUnload;
    }
  }
  return {};
}

TopAction TopScreenState::press_in_text(const TopKey& key) {
  const size_t last = lines_.empty() ? 0 : lines_.size() - 1;
  const auto scroll_to = [&](int64_t line) {
    scroll_ = static_cast<size_t>(std::clamp<int64_t>(line, 0, static_cast<int64_t>(last)));
  };
  const auto now = static_cast<int64_t>(scroll_);
  const bool is_down = key.kind == TopKey::Kind::kDown || key.character == 'j';
  const bool is_up = key.kind == TopKey::Kind::kUp || key.character == 'k';
  if (is_down) scroll_to(now + 1);
  if (is_up) scroll_to(now - 1);
  if (key.kind == TopKey::Kind::kPageDown) scroll_to(now + kPageRows);
  if (key.kind == TopKey::Kind::kPageUp) scroll_to(now - kPageRows);
  if (key.kind == TopKey::Kind::kEscape || key.kind == TopKey::Kind::kEnter) mode_ = Mode::kPanes;
  if (key.character == 'q') return {TopAction::Kind::kQuit, ""};
  return {};
}

TopAction TopScreenState::press_in_load(const TopKey& key) {
  if (key.kind == TopKey::Kind::kEscape) mode_ = Mode::kPanes;
  if (key.kind == TopKey::Kind::kBackspace && !input_.empty()) input_.pop_back();
  const bool is_text = key.kind == TopKey::Kind::kCharacter;
  if (is_text && input_.size() < kInputBytesMax) input_ += key.character;
  if (key.kind != TopKey::Kind::kEnter) return {};
  mode_ = Mode::kPanes;
  if (input_.empty()) return {};
  return {TopAction::Kind::kLoad, input_};
}

void TopScreenState::move(int by, const TopFacts& facts) {
  const auto count = static_cast<int64_t>(top_rows(facts, pane_, is_sorted_, {}).size());
  auto& selected = selected_[static_cast<size_t>(pane_)];
  const int64_t moved = static_cast<int64_t>(selected) + by;
  selected = static_cast<size_t>(std::clamp<int64_t>(moved, 0, std::max<int64_t>(0, count - 1)));
}

void TopScreenState::show_text(std::string title, std::vector<std::string> lines) {
  mode_ = Mode::kText;
  title_ = std::move(title);
  lines_ = std::move(lines);
  scroll_ = 0;
}

std::vector<std::string> top_help_lines() {
  return {"1 to 5      machines, models, requests, links, events",
          "up, down    choose a line (also k and j); Page Up, Page Down",
          "Enter       all about it; Esc goes back",
          "s           sort by what matters most in the pane, and back",
          "l           load a model: a folder, a .gguf file or org/name",
          "u           unload the chosen model; it asks first",
          "L           the log of the node",
          "d           the doctor: what is wrong and how to mend it",
          "p           PINs of machines that ask to join",
          "q           leave (also Ctrl-C)"};
}

std::vector<std::string> top_pin_lines(const TopFacts& facts) {
  const Json& status = facts.cluster.status();
  std::vector<std::string> lines;
  for (const Json& pin : list_in(status, "pins")) lines.push_back(harmless_line(pin_text(pin)));
  if (!lines.empty()) return lines;
  if (!flag_in(status, "control")) {
    return {"PINs are shown only to this machine's own user of the node."};
  }
  if (text_in(status, "cluster").empty()) return {"The node is in no cluster (serve --alone)."};
  return {"No machine asks to join. On another one, run: lockstep serve --join THIS-MACHINE"};
}

}  // namespace lockstep
