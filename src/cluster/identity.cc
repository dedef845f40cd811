#include "cluster/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/files/private_file.h"
#include "cluster/sentences.h"

namespace lockstep {
namespace {

constexpr const char* kNodeKeyFile = "node_key.pem";
constexpr const char* kClusterKeyFile = "cluster_key";
constexpr const char* kNameFile = "name";

Result<KeyPair> make_key(const std::filesystem::path& path) {
  const KeyPair made = TRY(KeyPair::generate());
  if (!TRY(create_private_file(path, TRY(made.to_pem())))) {
    return KeyPair::from_pem(TRY(read_private_file(path)));  // another process was faster
  }
  return made;
}

Result<KeyPair> open_key(const std::filesystem::path& path) {
  auto text = read_private_file(path);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return make_key(path);
  auto key = KeyPair::from_pem(TRY(std::move(text)));
  if (!key.ok()) {
    return Error{ErrorCode::kCorrupt,
                 path.string() +
                     " does not hold a node's key: restore it, or delete it to become a new node"};
  }
  return key;
}

}  // namespace

// The host's name up to the first dot, if it is a valid node name.
std::string machine_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "node";
  std::string name = host.data();
  name = name.substr(0, std::min(name.find('.'), Identity::kNameBytesMax));
  return is_node_name(name) ? name : "node";
}

bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= Identity::kNameBytesMax && is_plain_text(name);
}

Result<std::filesystem::path> Identity::default_folder() {
  if (const char* home = std::getenv("LOCKSTEP_HOME"); home != nullptr && *home != 0)
    return std::filesystem::path(home);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
    return std::filesystem::path(home) / ".lockstep";
  }
  return Error{ErrorCode::kNotFound,
               "there is no folder for this node's keys: set LOCKSTEP_HOME to one"};
}

Result<Identity> Identity::open(const std::filesystem::path& folder, const std::string& name) {
  TRY(make_private_folder(folder));
  KeyPair key = TRY(open_key(folder / kNodeKeyFile));
  const NodeId id = TRY(NodeId::of_public_key(key.public_key()));
  Identity identity(folder, std::move(key), id);
  TRY(identity.read_name(name));
  TRY(identity.read_cluster());
  return identity;
}

Status Identity::read_name(const std::string& given) {
  const std::filesystem::path path = folder_ / kNameFile;
  if (!given.empty()) {
    if (!is_node_name(given)) {
      return Error{ErrorCode::kInvalidArgument,
                   "a node's name has 1 to 63 bytes of text without control characters"};
    }
    name_ = given;
    return replace_private_file(path, given + "\n");
  }
  auto kept = read_private_file(path);
  if (kept.ok()) {
    std::string& text = kept.value();
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (is_node_name(text)) {
      name_ = std::move(text);
      return Ok{};
    }
  } else if (kept.error().code != ErrorCode::kNotFound) {
    return kept.error();
  }
  name_ = machine_name();
  return Ok{};
}

Status Identity::read_cluster() {
  const std::filesystem::path path = folder_ / kClusterKeyFile;
  auto text = read_private_file(path);
  if (!text.ok()) return text.error().code == ErrorCode::kNotFound ? Status(Ok{}) : text.error();
  auto key = ClusterKey::parse(std::string_view(text.value()).substr(0, text.value().find('\n')));
  if (!key.ok()) {
    return Error{
        ErrorCode::kCorrupt,
        path.string() + " does not hold a cluster key: restore it, or delete it and join again"};
  }
  cluster_ = std::move(key.value());
  return Ok{};
}

Status Identity::found_cluster() {
  return join_cluster(TRY(ClusterKey::generate()));
}

Status Identity::join_cluster(const ClusterKey& key) {
  if (cluster_ && *cluster_ == key) return Ok{};
  if (cluster_) {
    return Error{ErrorCode::kInvalidArgument, "this node is already in cluster " +
                                                  cluster_->id().short_text() + ": leave it first"};
  }
  TRY(replace_private_file(folder_ / kClusterKeyFile, key.text() + "\n"));
  cluster_ = key;
  return Ok{};
}

Status Identity::leave_cluster() {
  // The key last: a node that still had models but no key would take them to its next cluster.
  for (const auto& path : {cluster_folder(), folder_ / kClusterKeyFile}) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) {
      return Error{ErrorCode::kInternal, path.string() + " cannot be deleted: " + error.message()};
    }
  }
  cluster_.reset();
  return Ok{};
}

}  // namespace lockstep
