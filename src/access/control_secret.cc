#include "access/control_secret.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/crypto/hasher.h"
#include "base/files/private_file.h"
#include "base/hex.h"

namespace lockstep {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kNonceDigits = 64;
constexpr std::string_view kProofPurpose = "lockstep control proof 1";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
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

Result<std::string> make_secret() {
  std::array<std::byte, kSecretBytes> bytes{};
  TRY(fill_random(bytes));
  return to_hex(bytes);
}

}  // namespace

Result<ControlSecret> ControlSecret::open(const std::filesystem::path& folder) {
  TRY(make_private_folder(folder));
  TRY(check_owner(folder, false));
  const std::filesystem::path path = folder / kControlSecretFile;
  auto there = read_private_file(path);
  if (!there.ok() && there.error().code == ErrorCode::kNotFound) {
    TRY(create_private_file(path, TRY(make_secret()) + "\n"));
    there = read_private_file(path);  // another process may have been faster
  }
  return ControlSecret(TRY(digits_of(path, TRY(std::move(there)))));
}

Result<ControlSecret> ControlSecret::read(const std::filesystem::path& folder) {
  TRY(check_owner(folder, true));
  const std::filesystem::path path = folder / kControlSecretFile;
  return ControlSecret(TRY(digits_of(path, TRY(read_private_file(path)))));
}

bool ControlSecret::is(std::string_view text) const {
  return is_same_secret(sha256(bytes_of(text)), sha256(bytes_of(text_)));
}

Result<std::string> ControlSecret::proof(std::string_view nonce, uint16_t port) const {
  const std::string place = fmt::format("port {}", port);
  const Digest digest = TRY(
      hmac_sha256(bytes_of(text_), {bytes_of(kProofPurpose), bytes_of(place), bytes_of(nonce)}));
  return to_hex(digest);
}

bool ControlSecret::is_nonce(std::string_view text) {
  return is_hex(text, kNonceDigits);
}

}  // namespace lockstep
