#include "doctor/report/place_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/letters.h"

namespace lockstep {
namespace {

constexpr std::string_view kAddress = "[address]";
constexpr std::string_view kId = "[id]";
constexpr std::string_view kHost = "[host]";
// The longest form: IPv6 with a mapped IPv4 address and the name of an interface.
constexpr size_t kFormBytesMax = 64;
constexpr size_t kRunBytesMax = 256;  // of a name, so that a long text costs time in proportion
constexpr size_t kHardwareIdHexDigits = 12;  // after "0x"

constexpr std::array<std::string_view, 5> kLocalDomains{".local", ".lan", ".home", ".internal",
                                                        ".home.arpa"};

bool is_hex_digit(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

bool is_form_letter(char c) {
  return is_name_letter(c) || c == ':' || c == '%';
}

// Groups of hex digits of these lengths with `separator` between them.
template <size_t N>
bool has_groups(std::string_view text, const std::array<size_t, N>& lengths, char separator) {
  size_t at = 0;
  for (size_t i = 0; i < N; ++i) {
    if (i > 0 && (at >= text.size() || text[at++] != separator)) return false;
    for (size_t digit = 0; digit < lengths[i]; ++digit) {
      if (at >= text.size() || !is_hex_digit(text[at++])) return false;
    }
  }
  return at == text.size();
}

bool is_hardware_id(std::string_view text) {
  return text.size() >= kHardwareIdHexDigits + 2 &&
         (text.starts_with("0x") || text.starts_with("0X")) &&
         std::all_of(text.begin() + 2, text.end(), is_hex_digit);
}

// An address that tells somebody where the machine is.
bool is_telling_address(std::string_view text) {
  const std::string address(text.substr(0, text.find('%')));
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    const uint32_t number = ntohl(v4.s_addr);
    return number != INADDR_ANY && number >> 24 != 127;
  }
  in6_addr v6{};
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
         !IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string_view replacement_of(std::string_view text) {
  constexpr std::array<size_t, 6> kMac{2, 2, 2, 2, 2, 2};
  constexpr std::array<size_t, 5> kUuid{8, 4, 4, 4, 12};
  if (is_telling_address(text) || has_groups(text, kMac, ':') || has_groups(text, kMac, '-')) {
    return kAddress;
  }
  if (has_groups(text, kUuid, '-') || is_hardware_id(text)) return kId;
  return {};
}

bool is_letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// The longest beginning of `run` that is an address or an id; nothing if there is none. It is made
// of whole words.
size_t length_of_form(std::string_view run, std::string_view& replacement) {
  if (run.empty() || (!is_hex_digit(run.front()) && !run.starts_with("::"))) return 0;
  for (size_t length = std::min(run.size(), kFormBytesMax); length >= 3; --length) {
    const bool ends_inside_word = length < run.size() && is_letter_or_digit(run[length]);
    if (ends_inside_word || !is_letter_or_digit(run[length - 1])) continue;
    replacement = replacement_of(run.substr(0, length));
    if (!replacement.empty()) return length;
  }
  return 0;
}

// Without the end of a sentence: "alpha." is alpha.
std::string_view without_end(std::string_view name) {
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.remove_suffix(1);
  return name;
}

}  // namespace

PlaceNames PlaceNames::of_machine() {
  PlaceNames names;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) names.add_host(host.data());
  return names;
}

void PlaceNames::add_host(std::string_view name) {
  for (const std::string_view one : {name, name.substr(0, name.find('.'))}) {
    const std::string lower = lower_text(one);
    if (lower.size() >= kNameBytesMin && lower != "localhost") hosts_.push_back(lower);
  }
}

bool PlaceNames::is_host(std::string_view name) const {
  const std::string lower = lower_text(name);
  return std::find(hosts_.begin(), hosts_.end(), lower) != hosts_.end() ||
         std::any_of(kLocalDomains.begin(), kLocalDomains.end(), [&](std::string_view domain) {
           return lower.size() > domain.size() && lower.ends_with(domain);
         });
}

std::string PlaceNames::hidden(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    std::string_view run = text.substr(0, kRunBytesMax);
    run =
        run.substr(0, static_cast<size_t>(std::find_if_not(run.begin(), run.end(), is_form_letter) -
                                          run.begin()));
    std::string_view replacement;
    if (const size_t length = length_of_form(run, replacement); length > 0) {
      out += replacement;
      text.remove_prefix(length);
      continue;
    }
    const auto name_end = std::find_if_not(run.begin(), run.end(), is_name_letter);
    const std::string_view name =
        without_end(run.substr(0, static_cast<size_t>(name_end - run.begin())));
    if (name.empty()) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    out += is_host(name) ? kHost : name;
    text.remove_prefix(name.size());
  }
  return out;
}

}  // namespace lockstep
