// Identity: what a node keeps in its folder ($LOCKSTEP_HOME, or .lockstep in the user's home): its
// key, made once and permanent; its name; and the key of its cluster, once it has founded or joined
// one. Only the owner can access the folder (0700) and the keys (0600). Files are replaced whole,
// so a power cut leaves the old or the new one. Used at start, by one thread; any thread may read
// the value that open() returns.
//
//   node_key.pem      PKCS #8, Ed25519
//   cluster_key       64 hex digits
//   name              one line
//   cluster/          what the node remembers of its cluster
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/crypto/key_pair.h"
#include "base/result.h"
#include "cluster/cluster_key.h"
#include "cluster/node_id.h"

namespace lockstep {

class Identity {
 public:
  static constexpr size_t kNameBytesMax = 63;

  // Reads the folder and creates what is missing, except a cluster. A given `name` is stored; else
  // the stored one is used, else the machine's. kInvalidArgument if others can read a key, kCorrupt
  // if a key is invalid; both say which file and what to do.
  static Result<Identity> open(const std::filesystem::path& folder, const std::string& name = "");
  // $LOCKSTEP_HOME, else .lockstep in $HOME; kNotFound without either.
  static Result<std::filesystem::path> default_folder();

  const NodeId& id() const { return id_; }
  const std::string& name() const { return name_; }
  const KeyPair& key() const { return key_; }
  const std::filesystem::path& folder() const { return folder_; }
  // For facts about the cluster: its nodes, what should be loaded. It may not exist yet; it is
  // deleted when the node leaves the cluster.
  std::filesystem::path cluster_folder() const { return folder_ / "cluster"; }
  const std::optional<ClusterKey>& cluster() const { return cluster_; }

  // Creates a cluster of this node alone. kInvalidArgument if it is in one.
  Status found_cluster();
  // Joins the cluster whose key another node has sent. kInvalidArgument if it is in another one.
  Status join_cluster(const ClusterKey& key);
  // Forgets the key and everything about the cluster. The other nodes are not notified.
  Status leave_cluster();

 private:
  Identity(std::filesystem::path folder, KeyPair key, NodeId id)
      : folder_(std::move(folder)), key_(std::move(key)), id_(id) {}
  Status read_name(const std::string& given);
  Status read_cluster();

  std::filesystem::path folder_;
  KeyPair key_;
  NodeId id_;
  std::string name_;
  std::optional<ClusterKey> cluster_;
};

// The name of this machine, as a new node gets it.
std::string machine_name();

// UTF-8 of 1 to kNameBytesMax bytes without control characters.
bool is_node_name(std::string_view name);

}  // namespace lockstep
