// Shared by requests and answers of HTTP/1.1: header fields, the failure of a message, and
// character tests (RFC 9110 5.6, RFC 9112 5). Pure functions; used by the parsers of net/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

// Names in lower case, values without the spaces around them.
using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpFailure {
  int status;           // for a server's answer
  std::string message;  // one sentence
};

// Empty if there is no such field; the first one otherwise. `name` in lower case.
std::string_view find_field(const HttpFields& fields, std::string_view name);
size_t count_fields(const HttpFields& fields, std::string_view name);
// Whether any of the fields lists `token`, in any case: `Connection: keep-alive, close`.
bool lists_token(const HttpFields& fields, std::string_view name, std::string_view token);

bool is_token_char(char c);
bool is_token(std::string_view text);
// No control characters and no DEL; bytes from 0x80 on are allowed.
bool is_field_text(std::string_view text);  // tabs are allowed
bool is_same_word(std::string_view text, std::string_view lower);

// For Content-Length: only digits, at most kLengthDigitsMax of them.
inline constexpr size_t kLengthDigitsMax = 18;
std::optional<uint64_t> parse_length(std::string_view text);

}  // namespace lockstep
