#include "cli/client/served_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes_text.h"
#include "base/letters.h"
#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"
#include "cli/text/terminal_text.h"
#include "cli/text/transfer_text.h"

namespace lockstep {
namespace {

bool is_same_name(std::string_view a, std::string_view b) {
  return lower_text(a) == lower_text(b);
}

std::string_view last_part(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

bool has_alias(const Json& wanted, std::string_view text) {
  const auto aliases = list_in(wanted, "aliases");
  return std::any_of(aliases.begin(), aliases.end(), [&](const Json& alias) {
    return alias.is_string() && is_same_name(text_of(alias.get_string()), text);
  });
}

// How well a model fits the text; 0: not at all.
int match_of(const Json& model, std::string_view text, std::string_view path) {
  const std::string name = text_in(model, "name");
  const Json* wanted = find(model, "wanted");
  const std::string from = wanted == nullptr ? "" : text_in(*wanted, "path");
  if (!path.empty() && !from.empty()) return from == path ? 4 : 0;
  if (name == text) return 3;
  if (is_same_name(name, text) || (wanted != nullptr && has_alias(*wanted, text))) return 2;
  return is_same_name(last_part(name), last_part(text)) ? 1 : 0;
}

}  // namespace

const Json* find_served_model(const Json& status, std::string_view text, std::string_view path) {
  const Json* best = nullptr;
  int best_match = 0;
  for (const Json& model : list_in(status, "models")) {
    const int match = match_of(model, text, path);
    if (match > best_match) best = &model;
    best_match = std::max(best_match, match);
  }
  return best;
}

const Json* model_named(const Json& status, std::string_view name) {
  for (const Json& model : list_in(status, "models")) {
    if (text_in(model, "name") == name) return &model;
  }
  return nullptr;
}

bool is_model_ready(const Json& model) {
  return state_text(model) == "ready";
}

bool is_model_on_demand(const Json& model) {
  const Json* wanted = find(model, "wanted");
  return is_model_ready(model) || (wanted != nullptr && number_in(*wanted, "idle_unload_s") > 0);
}

std::string loading_text(const Json& model) {
  const Json* loading = find(model, "loading");
  if (loading == nullptr || !loading->is_object()) return "";
  const int64_t read = std::max<int64_t>(0, number_in(*loading, "read_bytes"));
  const int64_t whole = std::max<int64_t>(0, number_in(*loading, "whole_bytes"));
  return progress_text(static_cast<uint64_t>(read), static_cast<uint64_t>(whole),
                       real_in(*loading, "bytes_s"));
}

std::string model_progress(const Json& model) {
  const std::string loading = loading_text(model);
  if (!loading.empty()) return loading;
  const std::string sentence = text_in(model, "sentence");
  return harmless_line(state_text(model) + (sentence.empty() ? "" : ": " + sentence));
}

}  // namespace lockstep
