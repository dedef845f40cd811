// Qwen2's tokenizer.json, assembled from tests/data/tokenizer/qwen2: vocabulary.txt has, in the
// order of the ids, the symbols of the bytes and then the merges; a merge's token is its two parts
// joined. frame.json is the rest of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "json/json.h"
#include "json/json_file.h"

namespace lockstep {

// The text; an error if the frame cannot be read. `folder` is that of the two files.
inline Result<std::string> qwen_tokenizer_json(const std::filesystem::path& folder) {
  Json document = TRY(read_json_file(folder / "frame.json"));
  JsonObject tokens;
  JsonArray merges;
  std::ifstream vocabulary(folder / "vocabulary.txt");
  for (std::string line; std::getline(vocabulary, line);) {
    const size_t space = line.find(' ');
    if (space != std::string::npos) {
      merges.emplace_back(line);
      line.erase(space, 1);
    }
    const auto id = static_cast<int64_t>(tokens.size());
    tokens[line] = id;
  }
  JsonObject& model = document.as_object()["model"].as_object();
  model["vocab"] = std::move(tokens);
  model["merges"] = std::move(merges);
  return dump_json(document);
}

}  // namespace lockstep
