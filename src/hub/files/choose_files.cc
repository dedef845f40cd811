#include "hub/files/choose_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>

#include "base/bytes_text.h"
#include "base/text_hash.h"

namespace lockstep {
namespace {

constexpr const char* kSmallFiles[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer*.json",
                                       "tokenizer.model*",
                                       "*.tiktoken",
                                       "tiktoken.model",
                                       "tekken.json",
                                       "vocab.json",
                                       "vocab.txt",
                                       "merges.txt",
                                       "added_tokens.json",
                                       "special_tokens_map.json",
                                       "chat_template*",
                                       "*.safetensors.index.json",
                                       "1_Pooling/config.json",
                                       "mtp/config.json",
                                       "modules.json",
                                       "quantize_config.json",
                                       "hf_quant_config.json",
                                       "LICENSE*",
                                       "README.md"};

bool matches_any(const auto& patterns, std::string_view name) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [&](const auto& pattern) { return matches(pattern, name); });
}

bool is_top(std::string_view name) {
  return name.find('/') == name.npos;
}

bool is_gguf(std::string_view name) {
  return name.ends_with(".gguf");
}

bool is_weights(std::string_view name) {
  return is_gguf(name) || name.ends_with(".safetensors");
}

// "a-00002-of-00003.gguf" is a part of "a"; an unsplit file is a model by itself.
std::string gguf_model(std::string_view name) {
  constexpr std::string_view kEnd = "-00001-of-00001.gguf";
  const auto is_digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (name.size() > kEnd.size()) {
    const std::string_view end = name.substr(name.size() - kEnd.size());
    if (end[0] == '-' && is_digits(end.substr(1, 5)) && end.substr(6, 4) == "-of-" &&
        is_digits(end.substr(10, 5))) {
      return std::string(name.substr(0, name.size() - kEnd.size()));
    }
  }
  return std::string(name);
}

// A place of a model's draft layer (weights/source/draft_source.h).
constexpr const char* kDraftLayer = "mtp/model.safetensors";

constexpr size_t kNamedModelsMax = 100;  // in a message

struct GgufModel {
  std::string first_file;
  uint64_t bytes = 0;
};

Error several_gguf_files(const ModelId& id, const std::map<std::string, GgufModel>& models) {
  std::string names;
  size_t named = 0;
  for (const auto& [name, model] : models) {
    if (named++ == kNamedModelsMax) {
      names += ", ...";
      break;
    }
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", model.first_file,
                         bytes_text(model.bytes));
  }
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} holds {} GGUF models; pull one as {}/FILE: {}", id.repository,
                      models.size(), id.repository, names)};
}

// The weights to load: safetensors if there are any, else one GGUF model.
Result<std::unordered_set<std::string, TextHash>> choose_weights(
    const std::vector<const HubFile*>& candidates, const ModelId& id) {
  std::vector<std::string> names;
  for (const HubFile* file : candidates) {
    if (is_top(file->name) && file->name.ends_with(".safetensors")) names.push_back(file->name);
  }
  const auto is_doubled = [](const std::string& name) { return name.starts_with("consolidated"); };
  if (!std::all_of(names.begin(), names.end(), is_doubled)) std::erase_if(names, is_doubled);
  const auto chosen = [&names] {
    return std::unordered_set<std::string, TextHash>(names.begin(), names.end());
  };
  if (!names.empty() && id.file.empty()) {
    names.emplace_back(kDraftLayer);
    return chosen();
  }
  std::map<std::string, GgufModel> models;
  for (const HubFile* file : candidates) {
    const bool is_asked = id.file.empty() || gguf_model(file->name) == gguf_model(id.file);
    // An image projector is not a model.
    if (!is_gguf(file->name) || !is_asked || (id.file.empty() && matches("*mmproj*", file->name)))
      continue;
    GgufModel& model = models[gguf_model(file->name)];
    if (model.first_file.empty() || file->name < model.first_file) model.first_file = file->name;
    model.bytes += file->size;
    names.push_back(file->name);
  }
  if (!id.file.empty())
    std::erase_if(names, [](const std::string& name) { return !is_gguf(name); });
  if (models.size() > 1) return several_gguf_files(id, models);
  if (!models.empty()) return chosen();
  return Error{ErrorCode::kNotFound,
               id.file.empty()
                   ? fmt::format("{} has no safetensors and no GGUF files that could be loaded",
                                 id.repository)
                   : fmt::format("{} has no file {}", id.repository, id.file)};
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = pattern.npos, star_n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_n = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {  // the last star absorbs one more character
      p = star + 1;
      n = ++star_n;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<ModelFiles> choose_files(const ModelFiles& files, const ModelId& id,
                                const FileRules& rules) {
  ModelFiles chosen{.commit = files.commit};
  std::vector<const HubFile*> candidates;
  for (const HubFile& file : files.files) {
    if (matches_any(rules.exclude, file.name)) continue;
    if (rules.all) {
      chosen.files.push_back(file);
    } else if (!is_weights(file.name)) {
      if (matches_any(kSmallFiles, file.name)) chosen.files.push_back(file);
    } else if (rules.include.empty() || matches_any(rules.include, file.name)) {
      candidates.push_back(&file);
    }
  }
  if (rules.all) return chosen;
  const auto weights = TRY(choose_weights(candidates, id));
  for (const HubFile* file : candidates) {
    if (weights.contains(file->name)) chosen.files.push_back(*file);
  }
  return chosen;
}

}  // namespace lockstep
