#include "access/control_secret.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"
#include "base/files/private_file.h"
#include "base/hex.h"
#include "base/log_ring.h"

namespace lockstep {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kNonceDigits = 64;
constexpr size_t kHashDigits = 64;
constexpr std::string_view kProofPurpose = "lockstep control proof 2";
constexpr std::string_view kRequestPurpose = "lockstep control request 1";

// The header's part between the blanks before and after it; empty if there is none.
std::string_view part_of(std::string_view header, size_t number) {
  for (; number > 0; --number) {
    const size_t blank = header.find(' ');
    if (blank == std::string_view::npos) return {};
    header.remove_prefix(blank + 1);
  }
  return header.substr(0, header.find(' '));
}

// If we own the folder, no other user can have written its files. Root may also read another user's
// folder.
Status check_owner(const std::filesystem::path& folder, bool is_root_let_in) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) {
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                 fmt::format("{}: {}", folder.string(), std::strerror(errno))};
  }
  if (facts.st_uid == ::geteuid() || (is_root_let_in && ::geteuid() == 0)) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} belongs to another user (id {}): set LOCKSTEP_HOME to a folder of "
                           "your own",
                           folder.string(), facts.st_uid)};
}

// The hex digits in the file's text.
Result<std::string> digits_of(const std::filesystem::path& path, std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (is_hex(text, 2 * kSecretBytes)) return text;
  return Error{
      ErrorCode::kCorrupt,
      path.string() + " does not hold a control secret: delete it, and the node creates a new one"};
}

}  // namespace

Result<ControlSecret> ControlSecret::open(const std::filesystem::path& folder) {
  TRY(make_private_folder(folder));
  TRY(check_owner(folder, false));
  const std::filesystem::path path = folder / kControlSecretFile;
  auto there = read_private_file(path);
  if (!there.ok() && there.error().code == ErrorCode::kNotFound) {
    (void)TRY(create_private_file(path, TRY(random_hex(kSecretBytes)) + "\n"));
    there = read_private_file(path);  // another process may have been faster
  }
  std::string digits = TRY(digits_of(path, TRY(std::move(there))));
  keep_out_of_log(digits);
  return ControlSecret(std::move(digits));
}

Result<ControlSecret> ControlSecret::read(const std::filesystem::path& folder) {
  TRY(check_owner(folder, true));
  const std::filesystem::path path = folder / kControlSecretFile;
  return ControlSecret(TRY(digits_of(path, TRY(read_private_file(path)))));
}

Result<std::string> ControlSecret::proof(std::string_view nonce, std::string_view node_nonce,
                                         uint16_t port) const {
  const std::string said = fmt::format("{}\n{}\n{}\n{}", kProofPurpose, port, nonce, node_nonce);
  return to_hex(TRY(hmac_sha256(bytes_of(text_), {bytes_of(said)})));
}

// The target stands last: it alone may have any characters.
Result<std::string> ControlSecret::header(const Request& request) const {
  const std::string said =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", kRequestPurpose, request.port, request.node_nonce,
                  request.body_hash, request.method, request.target);
  const Digest mac = TRY(hmac_sha256(bytes_of(text_), {bytes_of(said)}));
  return fmt::format("{} {} {}", request.node_nonce, request.body_hash, to_hex(mac));
}

bool ControlSecret::is_header_of(std::string_view header, uint16_t port, std::string_view method,
                                 std::string_view target) const {
  const auto wanted = this->header({port, method, target, body_hash_in(header), nonce_in(header)});
  return wanted.ok() && is_same_secret(sha256(bytes_of(wanted.value())), sha256(bytes_of(header)));
}

std::string_view ControlSecret::nonce_in(std::string_view header) {
  return part_of(header, 0);
}

std::string_view ControlSecret::body_hash_in(std::string_view header) {
  const std::string_view hash = part_of(header, 1);
  return is_hex(hash, kHashDigits) ? hash : std::string_view();
}

std::string ControlSecret::body_hash_of(std::string_view body) {
  return to_hex(sha256(bytes_of(body)));
}

bool ControlSecret::is_nonce(std::string_view text) {
  return is_hex(text, kNonceDigits);
}

}  // namespace lockstep
