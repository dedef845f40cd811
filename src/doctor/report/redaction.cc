#include "doctor/report/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/letters.h"
#include "hub/files/settings.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRemoved = "[removed]";
constexpr size_t kKeyHexDigits = 64;    // of keys, tokens, MACs and whole node ids
constexpr size_t kWordBytesMax = 4096;  // of a token after "Bearer"

// The text after these words, in any case, is a secret, up to a space or a quote; after the last
// ones only if it looks like one, since sentences contain these words too.
constexpr std::array<std::string_view, 9> kBefore{
    "token=", "api_key=", "api-key=", "password=", "secret=",
    "key=",   "bearer ",  "basic ",   "token "};

// Beginnings of secrets with a form of their own.
constexpr std::array<std::string_view, 4> kForms{"lockstep-join-", "hf_", "sk-", "-----BEGIN "};

constexpr std::array<std::string_view, 16> kSecretNames{
    "pin",     "pins",     "token",   "secret", "key",   "api_key", "password",   "prompt",
    "prompts", "messages", "content", "text",   "input", "output",  "completion", "authorization"};

bool is_hex(char c) {
  return is_digit(c) || (lower_letter(c) >= 'a' && lower_letter(c) <= 'f');
}

bool ends_word(char c) {
  return c == '"' || c == '\'' || c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0;
}

size_t word_length(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), ends_word);
  return std::min<size_t>(static_cast<size_t>(end - text.begin()), kWordBytesMax);
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

bool looks_secret(std::string_view word) {
  constexpr size_t kLongWord = 20;
  return word.size() >= Redaction::kSecretBytesMin &&
         (word.size() >= kLongWord || std::any_of(word.begin(), word.end(), is_digit));
}

// The length of the secret at the start of `rest`, 0 if there is none.
size_t form_length(std::string_view rest, bool starts_word) {
  if (!starts_word) return 0;
  for (const std::string_view form : kForms) {
    if (rest.starts_with(form) && rest.size() > form.size()) return word_length(rest);
  }
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_hex);
  const auto digits = static_cast<size_t>(end - rest.begin());
  return digits >= kKeyHexDigits ? digits : 0;
}

// "PIN 123 456", "PIN: 123456": the length of the digits and the characters between them.
size_t pin_length(std::string_view rest) {
  size_t end = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (is_digit(rest[i])) {
      end = i + 1;
    } else if (rest[i] != ' ' && rest[i] != ':' && rest[i] != '-' && rest[i] != '=') {
      break;
    }
  }
  return end;
}

// `text` with everything in the form of a secret removed.
std::string without_forms(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const bool starts_word = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
    size_t kept = 0, cut = 0;
    if (starts_word && begins_with_any_case(rest, "pin")) {
      kept = 3;
      cut = pin_length(rest.substr(kept));
    }
    for (const std::string_view before : kBefore) {
      if (cut > 0 || !starts_word || !begins_with_any_case(rest, before)) continue;
      kept = before.size();
      cut = word_length(rest.substr(kept));
      if (before.ends_with(' ') && !looks_secret(rest.substr(kept, cut))) cut = 0;
    }
    if (cut == 0) {
      kept = 0;
      cut = form_length(rest, starts_word);
    }
    if (cut == 0) {
      out += text[at++];
      continue;
    }
    out += rest.substr(0, kept);
    if (kept == 3) out += ' ';
    out += kRemoved;
    at += kept + cut;
  }
  return out;
}

bool is_secret_name(std::string_view name) {
  return std::any_of(kSecretNames.begin(), kSecretNames.end(), [&](std::string_view one) {
    return name.size() == one.size() && begins_with_any_case(name, one);
  });
}

}  // namespace

Redaction Redaction::of_machine(const fs::path& home) {
  Redaction redaction;
  for (const char* name : {"cluster_key", "node_key.pem", "control_secret"}) {
    const auto file = read_small_file(home / name);
    if (!file.ok()) continue;
    std::istringstream lines(file.value());
    for (std::string line; std::getline(lines, line);) redaction.add_secret(line);
  }
  const auto settings = hub_settings_from_environment();
  if (settings.ok()) redaction.add_secret(settings.value().token);
  redaction.add_private_folder(home.string());
  if (const char* user = std::getenv("HOME")) redaction.add_private_folder(user);
  return redaction;
}

void Redaction::add_secret(std::string_view secret) {
  if (secret.size() >= kSecretBytesMin) secrets_.emplace_back(secret);
}

void Redaction::add_private_folder(std::string_view folder) {
  if (folder.size() > 1) folders_.emplace_back(folder);
}

std::string Redaction::text(std::string_view text) const {
  std::string out(text);
  for (const std::string& secret : secrets_) replace_all(out, secret, kRemoved);
  for (const std::string& folder : folders_) replace_all(out, folder, "~");
  out = without_forms(out);
  return places_ ? places_->hidden(out) : out;
}

Json Redaction::json(const Json& value) const {
  return json_at(value, "", 0);
}

Json Redaction::json_at(const Json& value, std::string_view key, size_t depth) const {
  if (is_secret_name(key) || depth > kJsonDepthMax) return Json(kRemoved);
  if (value.is_object()) {
    JsonObject object;
    for (const auto& [name, member] : value.get_object()) {
      const std::string_view name_view(name.data(), name.size());
      object[text(name_view)] = json_at(member, name_view, depth + 1);
    }
    return object;
  }
  if (value.is_array()) {
    JsonArray array;
    for (const Json& member : value.get_array()) array.push_back(json_at(member, "", depth + 1));
    return array;
  }
  if (!value.is_string()) return value;
  const std::string_view said(value.get_string().data(), value.get_string().size());
  if (key != "path" || !said.starts_with('/')) return Json(text(said));
  return Json(text(".../" + fs::path(said).filename().string()));
}

}  // namespace lockstep
