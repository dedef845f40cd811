#include "server/request/random_id.h"

#include <random>

namespace lockstep {

std::string random_id(std::string_view prefix) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id.push_back(kLetters[letter(device)]);
  return id;
}

}  // namespace lockstep
