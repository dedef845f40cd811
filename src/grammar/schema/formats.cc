#include "grammar/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "base/check.h"
#include "grammar/regex/regex.h"

namespace lockstep {
namespace {

constexpr std::string_view kDate =
    "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"
    "02-(0[1-9]|1\\d|2[0-8]))|"
    "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kFraction = "(\\.\\d{1,30})?";
constexpr std::string_view kDuration =
    "P((\\d+D|\\d+M(\\d+D)?|\\d+Y(\\d+M(\\d+D)?)?)"
    "(T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S))?|"
    "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S)|\\d+W)";
constexpr std::string_view kUuid =
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
constexpr std::string_view kIpv4 =
    "((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";

// RFC 3339: any time with a fraction and an offset, and the leap second of 23:59 UTC.
std::string time_pattern() {
  std::string pattern = fmt::format(
      "(([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d{0}([zZ]|[+-]([01]\\d|2[0-3]):[0-5]\\d)|"
      "23:59:60(\\.\\d+)?[zZ]",
      kFraction);
  // A leap second may have a fraction of any length: counting its digits would take many states.
  constexpr std::string_view kAnyFraction = "(\\.\\d+)?";
  constexpr int kDay = 24 * 60;
  for (int offset = -(kDay - 15); offset < kDay; offset += 15) {
    const int local = (kDay - 1 + offset + kDay) % kDay;
    const int distance = offset < 0 ? -offset : offset;
    pattern += fmt::format("|{:02}:{:02}:60{}\\{}{:02}:{:02}", local / 60, local % 60, kAnyFraction,
                           offset < 0 ? '-' : '+', distance / 60, distance % 60);
    if (offset == 0) pattern += fmt::format("|23:59:60{}-00:00", kAnyFraction);
  }
  return pattern + ")";
}

// RFC 4291, section 2.2: eight groups, one run of them as "::", the last two as IPv4.
std::string ipv6_pattern() {
  const std::string group = "[0-9a-fA-F]{1,4}";
  const std::string last = fmt::format("({0}:{0}|{1})", group, kIpv4);
  std::string pattern = fmt::format("(({0}:){{6}}{1}", group, last);
  for (int before = 0; before <= 7; ++before) {
    const std::string head = before == 0 ? "" : fmt::format("{0}(:{0}){{{1}}}", group, before - 1);
    const int behind = 7 - before;  // groups that may follow the "::"
    std::string tail;
    if (behind >= 1) tail = fmt::format("({0}(:{0}){{0,{1}}})?", group, behind - 1);
    pattern += "|" + head + "::" + tail;
    if (behind >= 2) {
      pattern += fmt::format("|{}::({}:){{0,{}}}{}", head, group, behind - 2, kIpv4);
    }
  }
  return pattern + ")";
}

// RFC 1123: labels of up to 63 characters, 253 in all. Counting both exactly would take 30000
// states, so names with many labels need shorter ones: 3 of 63, 7 of 35 or 15 of 15.
std::string hostname_pattern(int labels_min) {
  const auto labels = [labels_min](int count, int length) {
    const std::string label =
        fmt::format("[A-Za-z0-9]([A-Za-z0-9-]{{0,{}}}[A-Za-z0-9])?", length - 2);
    return fmt::format("{0}(\\.{0}){{{1},{2}}}", label, labels_min - 1, count - 1);
  };
  return "(" + labels(3, 63) + "|" + labels(7, 35) + "|" + labels(15, 15) + ")";
}

// The host name must have a dot, as in other validators.
std::string email_pattern() {
  return fmt::format(
      "([A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+)*|"
      "\"([ !#-\\[\\]-~]|\\\\[ -~])*\")@({}|\\[({}|IPv6:{})\\])",
      hostname_pattern(2), kIpv4, ipv6_pattern());
}

// RFC 3986, appendix A, with a part other than a query after the scheme.
std::string uri_pattern() {
  const std::string coded = "%[0-9A-Fa-f]{2}";
  const std::string letters = "-A-Za-z0-9._~!$&'()*+,;=";
  const std::string character = fmt::format("([{}:@]|{})", letters, coded);
  const std::string segments = fmt::format("(/{}*)*", character);
  const std::string host = fmt::format("(\\[({}|[vV][0-9A-Fa-f]+\\.[{}:]+)\\]|([{}]|{})*)",
                                       ipv6_pattern(), letters, letters, coded);
  const std::string authority = fmt::format("(([{}:]|{})*@)?{}(:\\d*)?", letters, coded, host);
  return fmt::format(
      "[A-Za-z][A-Za-z0-9+.-]*:(//{0}{1}|/({2}+{1})?|{2}+{1})(\\?({2}|[/?])*)?(#({2}|[/?])*)?",
      authority, segments, character);
}

Dfa made(std::string_view pattern) {
  WorkBudget budget = WorkBudget::unlimited();
  auto dfa = regex_dfa(pattern, RegexMatch::kWhole, budget);
  LOCKSTEP_CHECK(dfa.ok());
  return std::move(dfa.value());
}

Dfa without(const Dfa& from, std::string_view pattern) {
  WorkBudget budget = WorkBudget::unlimited();
  auto dfa = join(from, made(pattern), DfaJoin::kFirstOnly, budget);
  LOCKSTEP_CHECK(dfa.ok());
  return std::move(dfa.value());
}

Dfa make_format(std::string_view format) {
  const std::string any = "[\\x00-\\x7f]*";
  if (format == "date") return without(made(kDate), "0000" + any);
  if (format == "time") return made(time_pattern());
  if (format == "date-time") {
    return without(made(std::string(kDate) + "[tT]" + time_pattern()), "0000" + any);
  }
  if (format == "duration") return made(kDuration);
  if (format == "uuid") return made(kUuid);
  if (format == "ipv4") return made(kIpv4);
  if (format == "ipv6") return made(ipv6_pattern());
  if (format == "uri") return made(uri_pattern());
  const std::string coded_label = "([\\x00-\\x7f]*[.@])?[A-Za-z0-9]{2}--" + any;
  if (format == "email") return without(made(email_pattern()), "[\\x00-\\x7f]*@..--" + any);
  return without(made(hostname_pattern(1)), coded_label);
}

constexpr std::array<std::string_view, 10> kNames{"date-time", "time", "date", "duration", "email",
                                                  "hostname",  "ipv4", "ipv6", "uuid",     "uri"};

}  // namespace

std::shared_ptr<const Dfa> format_dfa(std::string_view format) {
  if (std::find(kNames.begin(), kNames.end(), format) == kNames.end()) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Dfa>, std::less<>> known;
  const std::lock_guard lock(mutex);
  auto& made = known[std::string(format)];
  if (!made) made = std::make_shared<const Dfa>(make_format(format));
  return made;
}

std::string known_formats() {
  return fmt::format("{}", fmt::join(kNames, ", "));
}

}  // namespace lockstep
