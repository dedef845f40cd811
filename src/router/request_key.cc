#include "router/request_key.h"

#include <algorithm>
#include <span>

#include "router/stable_hash.h"

namespace lockstep {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_same_text(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string_view text_of(const Json& object, std::string_view key) {
  const Json* found = find(object, key);
  return found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

// Adds at most `left` bytes.
void add_text(StableHash& hash, std::string_view text, size_t& left) {
  const std::string_view counted = text.substr(0, left);
  left -= counted.size();
  hash.add(counted);
}

// A string, or parts with a "text".
void add_content(StableHash& hash, const Json* content, size_t& left) {
  if (content == nullptr) return;
  if (content->is_string()) return add_text(hash, content->get_string(), left);
  if (!content->is_array()) return;
  for (const Json& part : content->get_array()) {
    if (left == 0) return;
    add_text(hash, text_of(part, "text"), left);
  }
}

// The messages up to the user's first.
std::optional<uint64_t> prefix_of_messages(StableHash hash, const Json* messages) {
  if (!messages || !messages->is_array() || messages->get_array().empty()) return std::nullopt;
  size_t left = kPrefixBytesMax;
  for (const Json& message : messages->get_array()) {
    const std::string_view role = text_of(message, "role");
    hash.add(role);
    add_content(hash, find(message, "content"), left);
    if (role == "user" || left == 0) break;
  }
  return hash.value();
}

std::optional<uint64_t> prefix_of_prompt(StableHash hash, const Json* prompt) {
  if (!prompt) return std::nullopt;
  size_t left = kPrefixBytesMax;
  if (prompt->is_string()) {
    add_text(hash, prompt->get_string(), left);
    return hash.value();
  }
  if (!prompt->is_array() || prompt->get_array().empty()) return std::nullopt;
  const Json& first = prompt->get_array().front();
  if (!first.is_int64()) return prefix_of_prompt(hash, first.is_null() ? nullptr : &first);
  const JsonArray& ids = prompt->get_array();
  const size_t count = std::min(ids.size(), kPrefixIdsMax);
  for (const Json& id : std::span(ids.data(), count)) {
    if (id.is_int64()) hash.add(static_cast<uint64_t>(id.get_int64()));
  }
  return hash.value();
}

}  // namespace

RequestKey read_request_key(std::string_view path, const Json& body) {
  RequestKey key;
  if (!body.is_object()) return key;
  key.model = std::string(text_of(body, "model"));
  const Json* stream = find(body, "stream");
  key.is_stream = stream && stream->is_bool() && stream->get_bool();
  if (path.ends_with("/embeddings")) return key;
  StableHash hash;
  hash.add(key.model);
  key.prefix = prefix_of_messages(hash, find(body, "messages"));
  if (!key.prefix) key.prefix = prefix_of_prompt(hash, find(body, "prompt"));
  return key;
}

bool is_name_of(std::string_view wanted, std::string_view model) {
  return is_same_text(wanted, model) || is_same_text(last_part(wanted), last_part(model));
}

}  // namespace lockstep
