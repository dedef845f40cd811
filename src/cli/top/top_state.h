// The facts that `lockstep top` shows and what the user does with them, as values: the cluster as
// far as it is known, and the state of the screen. Pure; one thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/stream/cluster_state.h"
#include "json/json.h"

namespace lockstep {

enum class TopPane { kMachines, kModels, kRequests, kLinks, kEvents };
inline constexpr size_t kTopPanes = 5;

struct TopFacts {
  std::string address;  // "localhost:8600"
  ClusterState cluster;
  Json requests = JsonObject();  // of GET /cluster/requests
  std::string problem;           // why nothing new comes; empty: all is well
};

// A task for the program after a key.
struct TopAction {
  enum class Kind { kNothing, kQuit, kLoad, kUnload, kLog, kDoctor };
  Kind kind = Kind::kNothing;
  std::string model;  // of kLoad, kUnload
};

struct TopKey {
  enum class Kind { kCharacter, kEnter, kEscape, kUp, kDown, kPageUp, kPageDown, kBackspace };
  Kind kind = Kind::kCharacter;
  char character = 0;  // ASCII
};

// Keys in what a terminal in raw mode has sent at once; other sequences are left out. An ESC at the
// end is the key.
std::vector<TopKey> parse_top_keys(std::string_view bytes);

class TopScreenState {
 public:
  enum class Mode { kPanes, kDetail, kText, kAskUnload, kAskLoad };

  TopAction press(const TopKey& key, const TopFacts& facts);

  // A text instead of the panes: the log, the doctor, the help.
  void show_text(std::string title, std::vector<std::string> lines);
  void tell(std::string sentence) { told_ = std::move(sentence); }

  Mode mode() const { return mode_; }
  TopPane pane() const { return pane_; }
  size_t selected() const { return selected_[static_cast<size_t>(pane_)]; }
  bool is_sorted() const { return is_sorted_; }
  size_t scroll() const { return scroll_; }
  const std::string& input() const { return input_; }
  const std::string& title() const { return title_; }
  const std::vector<std::string>& lines() const { return lines_; }
  const std::string& told() const { return told_; }  // below the panes, until the next key

 private:
  TopAction press_in_panes(const TopKey& key, const TopFacts& facts);
  TopAction press_character(char c, const TopFacts& facts);
  TopAction press_in_text(const TopKey& key);
  TopAction press_in_load(const TopKey& key);
  void move(int by, const TopFacts& facts);

  Mode mode_ = Mode::kPanes;
  TopPane pane_ = TopPane::kMachines;
  std::array<size_t, kTopPanes> selected_{};
  bool is_sorted_ = false;
  size_t scroll_ = 0;
  std::string input_;  // what is typed, or the model that may be unloaded
  std::string title_;
  std::vector<std::string> lines_;
  std::string told_;
};

std::vector<std::string> top_help_lines();
// PINs that are to be typed on machines that ask to join.
std::vector<std::string> top_pin_lines(const TopFacts& facts);

}  // namespace lockstep
