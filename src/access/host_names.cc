#include "access/host_names.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include "base/files/mapped_file.h"
#include "base/letters.h"

namespace lockstep {
namespace {

constexpr size_t kHostNameBytesMax = 253;
constexpr const char* kResolvConf = "/etc/resolv.conf";
constexpr size_t kResolvConfBytesMax = size_t{64} << 10;
constexpr std::string_view kLocalDomain = ".local";

bool is_port(std::string_view text) {
  return text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Host {
  std::string name;  // lower case, without the dot of the root
  bool is_bracketed = false;
};

// The host of "host", "host:port", "[address]" or "[address]:port".
std::optional<Host> host_in(std::string_view authority) {
  Host host;
  std::string_view name = authority, rest;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host.is_bracketed = true;
    name = authority.substr(1, end - 1);
    rest = authority.substr(end + 1);
  } else if (const size_t colon = authority.find(':'); colon != std::string_view::npos) {
    name = authority.substr(0, colon);
    rest = authority.substr(colon);
  }
  if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
  if (!host.is_bracketed && name.size() > 1 && name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kHostNameBytesMax) return std::nullopt;
  host.name = lower_text(name);
  return host;
}

std::optional<std::array<uint8_t, 4>> ipv4_of(const Host& host) {
  std::array<uint8_t, 4> bytes{};
  if (host.is_bracketed || ::inet_pton(AF_INET, host.name.c_str(), bytes.data()) != 1) {
    return std::nullopt;
  }
  return bytes;
}

// A link-local address may include its interface.
std::optional<std::array<uint8_t, 16>> ipv6_of(const Host& host) {
  const std::string address = host.name.substr(0, host.name.find('%'));
  std::array<uint8_t, 16> bytes{};
  if (!host.is_bracketed || ::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) {
    return std::nullopt;
  }
  return bytes;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kHostNameBytesMax &&
         std::all_of(text.begin(), text.end(), is_letter) && text.front() != '.' &&
         text.back() != '.';
}

std::vector<std::string> search_domains(std::string_view resolv_conf) {
  std::vector<std::string> domains;
  std::istringstream lines{std::string(resolv_conf)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || (word != "search" && word != "domain")) continue;
    while (words >> word) {
      word = lower_text(word);
      if (word.ends_with('.')) word.pop_back();
      if (is_name(word)) domains.push_back(word);
    }
  }
  return domains;
}

}  // namespace

bool is_every_address(std::string_view host) {
  return host == "*" || host == "0.0.0.0" || host == "::";
}

std::string host_to_open(const std::string& host) {
  return is_every_address(host) ? "localhost" : host;
}

bool is_loopback_authority(std::string_view authority) {
  const auto host = host_in(authority);
  if (!host) return false;
  if (!host->is_bracketed && host->name == "localhost") return true;
  if (const auto v4 = ipv4_of(*host)) return v4->front() == 127;
  constexpr std::array<uint8_t, 16> kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return ipv6_of(*host) == kLoopback;
}

bool is_address_authority(std::string_view authority) {
  const auto host = host_in(authority);
  if (!host) return false;
  if (ipv4_of(*host) || ipv6_of(*host)) return true;
  if (host->is_bracketed) return false;
  const bool is_local =
      host->name.size() > kLocalDomain.size() && host->name.ends_with(kLocalDomain);
  return host->name == "localhost" || is_local;
}

bool is_named_authority(std::string_view authority, const std::vector<std::string>& names) {
  const auto host = host_in(authority);
  return host && !host->is_bracketed &&
         std::find(names.begin(), names.end(), host->name) != names.end();
}

std::vector<std::string> host_names_of(std::string_view host_name, std::string_view resolv_conf) {
  std::string name = lower_text(host_name);
  if (name.ends_with('.')) name.pop_back();
  if (!is_name(name)) return {};
  const std::string first = name.substr(0, name.find('.'));
  std::vector<std::string> names{name, first, first + std::string(kLocalDomain)};
  for (const std::string& domain : search_domains(resolv_conf)) {
    names.push_back(fmt::format("{}.{}", first, domain));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> own_host_names() {
  std::array<char, kHostNameBytesMax + 3> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  const auto resolver = read_small_file(kResolvConf, kResolvConfBytesMax);
  return host_names_of(name.data(), resolver.ok() ? resolver.value() : "");
}

Result<std::string> parse_host_name(std::string_view text) {
  std::string name = lower_text(text);
  if (is_name(name)) return name;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format(
          "\"{}\" is not a host name: write it like gpu1.example.org, without a scheme or a port",
          text)};
}

}  // namespace lockstep
