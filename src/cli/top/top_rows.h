// The rows of the panes of `lockstep top`, from what is known of the cluster. All text is harmless
// and without styles. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/top/top_state.h"

namespace lockstep {

struct TopCharset {
  bool has_utf8 = true;
};

std::string_view top_pane_title(TopPane pane);
std::string top_pane_heading(TopPane pane);
// One for each machine, model...; events are the newest first.
std::vector<std::string> top_rows(const TopFacts& facts, TopPane pane, bool is_sorted,
                                  TopCharset charset);
// Everything about one row, a line each: "field: value".
std::vector<std::string> top_detail(const TopFacts& facts, TopPane pane, size_t row,
                                    bool is_sorted);
// The name of the model in this row; empty if there is none.
std::string top_model_at(const TopFacts& facts, size_t row, bool is_sorted);
// "2 machines, 45 W, 23.1 tok/s, 1 running, 0 waiting"
std::string top_summary(const TopFacts& facts);
// "14:02:11  box was lost"
std::string happening_line(const Json& happening);

}  // namespace lockstep
