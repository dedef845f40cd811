// Redaction: removes secrets and users' texts from texts that leave the machine: keys, tokens,
// PINs, prompts, home folders. Two nets: known secrets of this machine are removed wherever they
// occur, and so is everything with the form or the name of a secret. A value; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/report/place_names.h"
#include "json/json.h"

namespace lockstep {

class Redaction {
 public:
  static constexpr size_t kSecretBytesMin = 8;  // shorter ones would remove ordinary words

  // Knows no secrets: only forms and names.
  Redaction() = default;
  // Knows this machine's: the keys and the control secret in `home`, and the hub's token.
  static Redaction of_machine(const std::filesystem::path& home);

  void add_secret(std::string_view secret);
  // A folder to be replaced by "~".
  void add_private_folder(std::string_view folder);
  // From now on names and addresses of machines are hidden too.
  void hide_places(PlaceNames places) { places_ = std::move(places); }

  std::string text(std::string_view text) const;
  // Values under names like "token", "pin" and "prompt" become "[removed]", and every string passes
  // through text(). Paths of models keep their last part.
  Json json(const Json& value) const;

 private:
  Json json_at(const Json& value, std::string_view key, size_t depth) const;

  std::vector<std::string> secrets_;
  std::vector<std::string> folders_;
  std::optional<PlaceNames> places_;  // none: they stay
};

}  // namespace lockstep
