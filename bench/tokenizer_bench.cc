// Tokenizer: loading a tokenizer.json, encoding text, and one word of a megabyte.
//   tokenizer_bench [--tokenizer FILE] [--text FOLDER] [--rounds R]
// Run it in the project's folder: the defaults are the project's vocabulary and sources.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/percentile.h"
#include "support/qwen_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr size_t kLoadBytes = 8 << 20;
constexpr size_t kWordBytes = 1 << 20;
constexpr size_t kRandomBytes = 4 << 20;

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Each file of the folder once, in order of names.
std::string read_sources(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const auto& path : paths) text += read_text(path);
  return text;
}

// The same JSON with one value per line, as Hugging Face writes it, padded with spaces to `bytes`.
std::string pretty(const std::string& json, size_t bytes) {
  const auto commas = static_cast<size_t>(std::count(json.begin(), json.end(), ','));
  const size_t missing = bytes > json.size() ? bytes - json.size() : 0;
  const std::string spaces = "\n" + std::string(missing / (commas + 1), ' ');
  std::string result;
  bool is_in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    result += json[i];
    if (is_in_string && json[i] == '\\') {
      result += json[++i];
    } else if (json[i] == '"') {
      is_in_string = !is_in_string;
    } else if (json[i] == ',' && !is_in_string) {
      result += spaces;
    }
  }
  return result;
}

// Words that never repeat: no cache helps.
std::string random_words() {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < kRandomBytes) {
    for (size_t letters = 3 + random() % 8; letters > 0; --letters) {
      text += static_cast<char>('a' + random() % 26);
    }
    text += ' ';
  }
  return text;
}

// The median over the rounds, in seconds.
template <class Work>
double seconds_of(int rounds, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return at_percent(times, 50);
}

void print_encode(const Tokenizer& tokenizer, const char* what, const std::string& text,
                  int rounds) {
  size_t tokens = 0;
  const double seconds = seconds_of(rounds, [&] { tokens = tokenizer.encode(text, {}).size(); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::printf("%-28s %8.2f MB %9zu tokens %8.3f s %8.1f MB/s\n", what, megabytes, tokens, seconds,
              megabytes / seconds);
}

int run(const std::string& path, const std::string& folder, int rounds) {
  const std::string json =
      path.empty() ? qwen_tokenizer_json("tests/data/tokenizer/qwen2").value() : read_text(path);
  const auto load_it = [&] {
    return path.empty() ? Tokenizer::parse(json) : Tokenizer::load(path);
  };
  auto tokenizer = load_it();
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "tokenizer_bench: %s\n", tokenizer.error().message.c_str());
    return 2;
  }
  const double load = seconds_of(rounds, [&] { (void)load_it().ok(); });
  std::printf("%-28s %8.2f MB %26.3f s\n", "load", static_cast<double>(json.size()) / 1e6, load);
  if (json.starts_with('{')) {
    const std::string large = pretty(json, kLoadBytes);
    const double parse = seconds_of(rounds, [&] { (void)Tokenizer::parse(large).ok(); });
    std::printf("%-28s %8.2f MB %26.3f s\n", "load, with spaces",
                static_cast<double>(large.size()) / 1e6, parse);
  }
  print_encode(*tokenizer.value(), "encode sources", read_sources(folder), rounds);
  print_encode(*tokenizer.value(), "encode words without repeats", random_words(), rounds);
  print_encode(*tokenizer.value(), "encode one word, aaa...", std::string(kWordBytes, 'a'), rounds);
  std::string mixed;
  std::mt19937 random(11);
  while (mixed.size() < kWordBytes) mixed += static_cast<char>('a' + random() % 26);
  print_encode(*tokenizer.value(), "encode one word, random", mixed, rounds);
  print_encode(*tokenizer.value(), "encode spaces", std::string(kWordBytes, ' ') + "x", rounds);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  CLI::App app("measures tokenizers");
  std::string tokenizer;
  std::string folder = "src";
  int rounds = 5;
  app.add_option("--tokenizer", tokenizer, "a tokenizer's file (default: Qwen2's, of the tests)");
  app.add_option("--text", folder, "a folder of text files");
  app.add_option("--rounds", rounds, "the median of so many runs")->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  return lockstep::run(tokenizer, folder, rounds);
}
