// A probe: one parser and one hostile shape of its input, in any size. growth_probe runs it with
// inputs of n, 2n and 4n items; growth_test.py counts the instructions of each run under callgrind
// and fails where they grow faster than the input. The *_probes.cc of this folder have the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Parses the input that it holds. False: refused.
using Reading = std::function<bool()>;

struct Probe {
  std::string name;  // "parser: shape"
  size_t items;      // n, large enough that the items cost more than the fixed part
  std::function<Reading(size_t items)> prepare;  // makes the input, which is not counted
};

using Probes = std::vector<Probe>;

Probes json_probes();
Probes template_probes();
Probes output_probes();
Probes request_probes();
Probes prompt_probes();
Probes tokenizer_probes();
Probes grammar_probes();
Probes frame_probes();
Probes file_probes();
// A nested loop and a single one: the test has to tell them apart.
Probes control_probes();

// Grammars that would cost far more than their text: each stops within a tenth of the work limit,
// and growth_test.py compares the instructions with the charged steps.
struct CostProbe {
  std::string name;
  std::function<int64_t(int64_t steps_max)> run;  // returns the steps that were charged
};
std::vector<CostProbe> cost_probes();

// `count` times `text`, or the results of `one` for 0, 1...
std::string repeated(std::string_view text, size_t count);
std::string listed(size_t count, std::string_view between,
                   const std::function<std::string(size_t)>& one);
// The same for a text in which each '@' is replaced with the number.
std::string numbered(size_t count, std::string_view one, std::string_view between = ",");
// `count` Chinese characters, each preceded by `before`.
std::string chinese_letters(size_t count, std::string_view before, std::string_view between);
// An input that is `begin`, numbered() repetitions of `one`, and `end`.
struct ListText {
  std::string_view name;
  size_t items;
  std::string_view begin;
  std::string_view one;
  std::string_view end;
};
// For texts that live as long as the program.
Probe list_probe(const ListText& text, bool (*read)(const std::string&));
Probes list_probes(const std::vector<ListText>& texts, bool (*read)(const std::string&));
// A probe of a function over a text.
Probe text_probe(std::string name, size_t items, std::function<std::string(size_t)> text,
                 std::function<bool(const std::string&)> read);
// The contents of a source file; ends the program if there is none.
std::string source_file(const std::string& path);

}  // namespace lockstep

// The function that growth_test.py has callgrind count.
extern "C" bool growth_measured(const lockstep::Reading& read);
extern "C" int64_t cost_measured(const lockstep::CostProbe& probe, int64_t steps_max);
