// Redaction: takes secrets and what users wrote out of texts that leave the machine: keys, tokens,
// PINs, prompts, the folders of users. Two nets: what is known to be secret here is taken out
// wherever it stands, and so is what has the form or the name of a secret. A value; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace lockstep {

class Redaction {
 public:
  static constexpr size_t kSecretBytesMin = 8;  // shorter ones would take ordinary words out

  // Knows no secret: forms and names alone.
  Redaction() = default;
  // Knows this machine's: the keys in `home` and the hub's token.
  static Redaction of_machine(const std::filesystem::path& home);

  void add_secret(std::string_view secret);
  // A folder that becomes "~".
  void add_private_folder(std::string_view folder);

  std::string text(std::string_view text) const;
  // Values under names like "token", "pin" and "prompt" become "[removed]", and every string goes
  // through text(). Paths of models keep their last part.
  Json json(const Json& value) const;

 private:
  Json json_at(const Json& value, std::string_view key, size_t depth) const;

  std::vector<std::string> secrets_;
  std::vector<std::string> folders_;
};

}  // namespace lockstep
