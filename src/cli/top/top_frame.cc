#include "cli/top/top_frame.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/client/node_client.h"

namespace lockstep {
namespace {

constexpr std::array<TopPane, kTopPanes> kPaneOrder = {
    TopPane::kMachines, TopPane::kModels, TopPane::kRequests, TopPane::kLinks, TopPane::kEvents};

std::string head_text(const TopFacts& facts) {
  const std::string version = harmless_line(text_in(facts.cluster.status(), "version"));
  return fmt::format("lockstep {}  {}  {}", version, facts.address, top_summary(facts));
}

// A banner if something is wrong or a machine asks to join.
std::string banner_text(const TopFacts& facts) {
  if (!facts.problem.empty()) return facts.problem;
  if (list_in(facts.cluster.status(), "pins").empty()) return "";
  return top_pin_lines(facts).front();
}

class FrameWriter {
 public:
  FrameWriter(const TerminalManner& manner, const TopSize& size) : manner_(manner), size_(size) {}

  void add(std::string_view text) { put(fitted(text)); }
  void add(TextStyle style, std::string_view text) { put(styled(manner_, style, fitted(text))); }
  std::vector<std::string> take() {
    lines_.resize(size_.rows);
    return std::move(lines_);
  }
  // The last line.
  void add_foot(std::string_view text) {
    while (lines_.size() + 1 < size_.rows) lines_.emplace_back();
    lines_.resize(size_.rows - 1);
    add(TextStyle::kDim, text);
  }
  size_t used() const { return lines_.size(); }

 private:
  std::string fitted(std::string_view text) const {
    return fit_columns(text, size_.columns, manner_.has_utf8);
  }
  void put(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    lines_.push_back(std::move(line));
  }

  const TerminalManner manner_;
  const TopSize size_;
  std::vector<std::string> lines_;
};

// `first` so that the chosen row is among `shown`.
size_t first_row(size_t chosen, size_t count, size_t shown) {
  if (count <= shown || chosen < shown) return 0;
  return std::min(chosen - shown + 1, count - shown);
}

void add_pane(FrameWriter& out, const TopFacts& facts, const TopScreenState& screen, TopPane pane,
              const std::vector<std::string>& rows, size_t shown) {
  const bool is_chosen = pane == screen.pane();
  const auto number = static_cast<int>(pane) + 1;
  const std::string title = fmt::format("{} {}", number, top_pane_title(pane));
  const std::string heading = "  " + top_pane_heading(pane);  // as far in as the rows
  std::string line = title;
  if (heading.size() > title.size() + 1) line += heading.substr(title.size());
  if (rows.size() > shown) line += fmt::format("  ({} of {})", shown, rows.size());
  out.add(is_chosen ? TextStyle::kReverse : TextStyle::kBold, line);
  const size_t first = is_chosen ? first_row(screen.selected(), rows.size(), shown) : 0;
  for (size_t i = first; i < rows.size() && i < first + shown; ++i) {
    const bool is_selected = is_chosen && i == screen.selected();
    if (is_selected) {
      out.add(TextStyle::kBold, "> " + rows[i]);
    } else {
      out.add("  " + rows[i]);
    }
  }
  if (rows.empty() && shown > 0) {
    out.add(TextStyle::kDim, facts.cluster.has_status() ? "  none" : "  ...");
  }
}

void add_panes(FrameWriter& out, const TopFacts& facts, const TopScreenState& screen,
               const TerminalManner& manner, size_t rows_left) {
  std::array<std::vector<std::string>, kTopPanes> rows;
  std::array<size_t, kTopPanes> wanted{};
  for (const TopPane pane : kPaneOrder) {
    const auto i = static_cast<size_t>(pane);
    rows[i] = top_rows(facts, pane, screen.is_sorted(), {manner.has_utf8});
    wanted[i] = std::max<size_t>(1, rows[i].size());
  }
  const size_t room = rows_left > kTopPanes ? rows_left - kTopPanes : 0;
  const auto shown = share_rows(wanted, room, screen.pane());
  for (const TopPane pane : kPaneOrder) {
    const auto i = static_cast<size_t>(pane);
    add_pane(out, facts, screen, pane, rows[i], shown[i]);
  }
}

void add_text(FrameWriter& out, const std::string& title, const std::vector<std::string>& lines,
              size_t scroll, size_t rows_left, size_t columns) {
  out.add(TextStyle::kReverse, title);
  size_t left = rows_left > 0 ? rows_left - 1 : 0;
  for (size_t i = scroll; i < lines.size() && left > 0; ++i) {
    std::string_view rest = lines[i];
    do {  // long lines go on below
      std::string_view part = first_columns(rest, columns);
      if (part.empty()) part = rest;  // a character is wider than the terminal
      out.add(part);
      rest.remove_prefix(part.size());
      --left;
    } while (!rest.empty() && left > 0);
  }
}

std::string foot_text(const TopScreenState& screen) {
  switch (screen.mode()) {
    case TopScreenState::Mode::kAskUnload:
      return fmt::format("Unload {}? y: yes, any other key: no", harmless_line(screen.input()));
    case TopScreenState::Mode::kAskLoad:
      return fmt::format("Load which model? {}_", harmless_line(screen.input()));
    case TopScreenState::Mode::kText:
      return "Esc back   up/down scroll   q quit";
    case TopScreenState::Mode::kDetail:
      return "Esc back   q quit";
    case TopScreenState::Mode::kPanes:
      break;
  }
  if (!screen.told().empty()) return harmless_line(screen.told());
  return "1-5 Enter Esc  s sort  l load  u unload  L log  d doctor  p PIN  ? help  q quit";
}

}  // namespace

std::array<size_t, kTopPanes> share_rows(const std::array<size_t, kTopPanes>& wanted, size_t rows,
                                         TopPane chosen) {
  std::array<size_t, kTopPanes> shares{};
  const auto give = [&](size_t pane) {
    if (rows == 0 || shares[pane] >= wanted[pane]) return false;
    ++shares[pane];
    --rows;
    return true;
  };
  for (size_t pane = 0; pane < kTopPanes; ++pane) give(pane);
  for (bool has_given = true; has_given;) {
    has_given = give(static_cast<size_t>(chosen));
    for (size_t pane = 0; pane < kTopPanes; ++pane) has_given |= give(pane);
  }
  return shares;
}

namespace {

// Without UTF-8, names of others have a ? for each character that is not ASCII.
std::vector<std::string> for_terminal(std::vector<std::string> lines,
                                      const TerminalManner& manner) {
  if (manner.has_utf8) return lines;
  for (std::string& line : lines) {
    std::erase_if(line, is_utf8_continuation);
    for (char& c : line) {
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> top_frame(const TopFacts& facts, const TopScreenState& screen,
                                   const TerminalManner& manner, const TopSize& size) {
  FrameWriter out(manner, size);
  out.add(TextStyle::kBold, head_text(facts));
  const std::string banner = banner_text(facts);
  if (!banner.empty()) out.add(TextStyle::kReverse, banner);
  const size_t left = size.rows > out.used() + 1 ? size.rows - out.used() - 1 : 0;
  if (screen.mode() == TopScreenState::Mode::kText) {
    add_text(out, screen.title(), screen.lines(), screen.scroll(), left, size.columns);
  } else if (screen.mode() == TopScreenState::Mode::kDetail) {
    const auto lines = top_detail(facts, screen.pane(), screen.selected(), screen.is_sorted());
    add_text(out, std::string(top_pane_title(screen.pane())), lines, 0, left, size.columns);
  } else {
    add_panes(out, facts, screen, manner, left);
  }
  out.add_foot(foot_text(screen));
  return for_terminal(out.take(), manner);
}

std::vector<std::string> top_lines(const TopFacts& facts, const TerminalManner& manner) {
  std::vector<std::string> lines{head_text(facts)};
  const std::string banner = banner_text(facts);
  if (!banner.empty()) lines.push_back(banner);
  for (const TopPane pane : kPaneOrder) {
    const auto rows = top_rows(facts, pane, false, {manner.has_utf8});
    if (rows.empty()) continue;
    const std::string heading = top_pane_heading(pane);
    const std::string title(top_pane_title(pane));
    std::string line = title;
    if (heading.size() > title.size()) line += heading.substr(title.size());
    lines.push_back(line);
    constexpr size_t kEventsShown = 10;
    const size_t count =
        pane == TopPane::kEvents ? std::min(rows.size(), kEventsShown) : rows.size();
    for (size_t i = 0; i < count; ++i) lines.push_back("  " + rows[i]);
  }
  return for_terminal(std::move(lines), manner);
}

}  // namespace lockstep
