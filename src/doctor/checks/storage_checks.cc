#include "doctor/checks/storage_checks.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

#include "base/bytes_text.h"
#include "base/files/free_space.h"
#include "cluster/identity.h"
#include "hub/files/settings.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kModelBytesMin = uint64_t{1} << 30;
constexpr uint64_t kModelBytesUsual = uint64_t{20} << 30;
constexpr uint64_t kHomeBytesMin = uint64_t{64} << 20;
constexpr unsigned kOthers = 0077;
constexpr unsigned kRightsMask = 0777;

bool can_write(const fs::path& path) {
  return ::access(nearest_there(path).c_str(), W_OK | X_OK) == 0;
}

void judge_stored_models(const StorageFacts& facts, Findings& findings) {
  const std::string mend =
      "remove models (`lockstep list`, `lockstep remove MODEL`), or set "
      "HF_HUB_CACHE to a folder on a larger disk";
  if (!facts.can_write_models) {
    add_problem(findings, "models_folder",
                fmt::format("models cannot be written to {}", facts.models.string()),
                fmt::format("sudo chown -R \"$USER\" {}, or set HF_HUB_CACHE to another folder",
                            facts.models.string()));
  }
  if (!facts.models_free_bytes) return;
  const std::string sentence = fmt::format(
      "{} are free for models in {}", bytes_text(*facts.models_free_bytes), facts.models.string());
  if (*facts.models_free_bytes < kModelBytesMin) {
    add_problem(findings, "models_space", "only " + sentence, mend);
  } else if (*facts.models_free_bytes < kModelBytesUsual) {
    add_note(findings, "models_space", "only " + sentence, mend);
  } else {
    add_ok(findings, "models_space", sentence);
  }
}

void judge_rights(const FileRights& file, Findings& findings) {
  const std::string path = file.path.string();
  if (!file.is_ours) {
    add_problem(findings, "key_rights", fmt::format("{} belongs to another user", path),
                fmt::format("sudo chown \"$USER\" {}", path));
  }
  if ((file.mode & kOthers) != 0) {
    add_problem(findings, "key_rights",
                fmt::format("others can {} {} (mode {:o})",
                            file.is_folder ? "look into" : "read the secret in", path, file.mode),
                fmt::format("chmod {} {}", file.is_folder ? "700" : "600", path));
  }
}

void judge_home(const StorageFacts& facts, Findings& findings) {
  if (facts.home.empty()) {
    return add_problem(findings, "home",
                       "neither LOCKSTEP_HOME nor HOME is set, so a node has no "
                       "place for its key",
                       "export LOCKSTEP_HOME=/var/lib/lockstep");
  }
  if (facts.home_free_bytes && *facts.home_free_bytes < kHomeBytesMin) {
    add_problem(findings, "home",
                fmt::format("only {} are free in {}, where a node keeps what is loaded",
                            bytes_text(*facts.home_free_bytes), facts.home.string()),
                "make room on that disk");
  }
  const size_t before = findings.size();
  for (const FileRights& file : facts.private_files) judge_rights(file, findings);
  if (findings.size() > before) return;
  add_ok(
      findings, "key_rights",
      facts.private_files.empty()
          ? "this machine has no node key yet; the first start makes one"
          : fmt::format("the keys in {} are readable by their owner alone", facts.home.string()));
}

}  // namespace

std::vector<FileRights> list_private_files(const fs::path& home) {
  std::vector<FileRights> files;
  for (const fs::path& path : {home, home / "node_key.pem", home / "cluster_key",
                               home / "control_secret", home / "api_keys"}) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    files.push_back({.path = path,
                     .is_folder = S_ISDIR(status.st_mode),
                     .mode = static_cast<unsigned>(status.st_mode) & kRightsMask,
                     .is_ours = status.st_uid == ::geteuid()});
  }
  return files;
}

StorageFacts collect_storage() {
  StorageFacts facts;
  const auto settings = hub_settings_from_environment();
  if (settings.ok()) {
    facts.models = settings.value().cache;
    facts.models_free_bytes = free_bytes_at(facts.models);
    facts.can_write_models = can_write(facts.models);
  } else {
    facts.settings_error = settings.error().message;
  }
  if (const auto home = Identity::default_folder(); home.ok()) {
    facts.home = home.value();
    facts.home_free_bytes = free_bytes_at(facts.home);
    facts.private_files = list_private_files(facts.home);
  }
  return facts;
}

Findings judge_storage(const StorageFacts& facts) {
  Findings findings;
  if (facts.settings_error.empty()) {
    judge_stored_models(facts, findings);
  } else {
    add_problem(findings, "hub_settings", facts.settings_error,
                "fix that environment variable or unset it");
  }
  judge_home(facts, findings);
  return findings;
}

}  // namespace lockstep
