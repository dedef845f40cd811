// growth_probe: runs probes (probe.h) for growth_test.py, which runs it under callgrind.
//   growth_probe --list
//   growth_probe NAME...   a line for each run: NAME TAB ITEMS TAB VERDICT; of two items, which are
//                          not measured, and of n, 2n and 4n
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "growth/probe.h"

namespace lockstep {

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string listed(size_t count, std::string_view between,
                   const std::function<std::string(size_t)>& one) {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) all += between;
    all += one(i);
  }
  return all;
}

std::string numbered(size_t count, std::string_view one, std::string_view between) {
  return listed(count, between, [one](size_t i) {
    std::string text;
    for (const char c : one) c == '@' ? text += std::to_string(i) : text += c;
    return text;
  });
}

std::string chinese_letters(size_t count, std::string_view before, std::string_view between) {
  return listed(count, between, [before](size_t i) {
    const size_t point = 0x4E00 + i % 20'000;
    std::string text(before);
    text += static_cast<char>(0xE0 | (point >> 12));
    text += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
    return text;
  });
}

Probe list_probe(const ListText& text, bool (*read)(const std::string&)) {
  return text_probe(
      std::string(text.name), text.items,
      [text](size_t n) {
        return std::string(text.begin) + numbered(n, text.one) + std::string(text.end);
      },
      read);
}

Probes list_probes(const std::vector<ListText>& texts, bool (*read)(const std::string&)) {
  Probes probes;
  for (const ListText& text : texts) probes.push_back(list_probe(text, read));
  return probes;
}

Probe text_probe(std::string name, size_t items, std::function<std::string(size_t)> text,
                 std::function<bool(const std::string&)> read) {
  return {std::move(name), items,
          [text = std::move(text), read = std::move(read)](size_t count) -> Reading {
            return [input = text(count), read] { return read(input); };
          }};
}

std::string source_file(const std::string& path) {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/" + path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "growth_probe: no file %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

namespace {

constexpr int64_t kStepsMax = 2'000'000;

Probes all_probes() {
  Probes all;
  for (const auto& part :
       {json_probes(), template_probes(), output_probes(), request_probes(), prompt_probes(),
        tokenizer_probes(), grammar_probes(), frame_probes(), file_probes(), control_probes()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void run(const Probe& probe) {
  // Shows that the input is valid, and triggers one-time initialisation.
  const bool is_small_read = probe.prepare(2)();
  std::printf("%s\t2\t%s\n", probe.name.c_str(), is_small_read ? "small read" : "small refused");
  for (const size_t factor : {1, 2, 4}) {
    const Reading read = probe.prepare(factor * probe.items);
    const bool is_read = growth_measured(read);
    std::printf("%s\t%zu\t%s\n", probe.name.c_str(), factor * probe.items,
                is_read ? "read" : "refused");
    std::fflush(stdout);
  }
}

void run(const CostProbe& probe) {
  probe.run(1'000);
  const int64_t steps = cost_measured(probe, kStepsMax);
  std::printf("%s\t%lld\tsteps\n", probe.name.c_str(), static_cast<long long>(steps));
  std::fflush(stdout);
}

int run_all(int count, char** names) {
  const Probes probes = all_probes();
  const auto costs = cost_probes();
  for (int i = 0; i < count; ++i) {
    const std::string_view name = names[i];
    bool is_known = false;
    for (const Probe& probe : probes) {
      if (probe.name != name) continue;
      run(probe);
      is_known = true;
    }
    for (const CostProbe& probe : costs) {
      if (probe.name != name) continue;
      run(probe);
      is_known = true;
    }
    if (!is_known) {
      std::fprintf(stderr, "growth_probe: no probe \"%s\"\n", names[i]);
      return 2;
    }
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--list") {
    for (const auto& probe : lockstep::all_probes()) std::printf("%s\n", probe.name.c_str());
    for (const auto& probe : lockstep::cost_probes()) std::printf("%s\n", probe.name.c_str());
    return 0;
  }
  return lockstep::run_all(count - 1, arguments + 1);
}
