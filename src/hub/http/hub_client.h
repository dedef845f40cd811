// The hub: a model's list of files, and pieces of files. Transient failures (no connection, a body
// that ends early, 408, 429, 5xx) are retried with growing pauses, a piece from the byte where it
// stopped; all others become one sentence that says what to do. One thread uses an object.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/model_id.h"
#include "hub/files/piece_source.h"
#include "hub/files/settings.h"
#include "hub/http/http_client.h"

namespace lockstep {

struct HubOptions {
  HubSettings settings;
  int retries = 7;  // in a row, without data
  const std::atomic<bool>* cancelled = nullptr;
  std::atomic<uint64_t>* received = nullptr;  // a counter: adds bytes received of files
};

// A failed try: the error, whether a retry may help, and when.
struct HubFailure {
  Error error;
  bool may_pass = false;
  std::chrono::milliseconds pause{0};  // at least
};

// kNotFound, kInvalidArgument (a token is needed or refused), kPeerLost, kTimeout, kCorrupt.
Result<ModelFiles> fetch_model_files(const HubOptions& options, const ModelId& id);

class HubSource : public PieceSource {
 public:
  HubSource(HubOptions options, ModelId id, std::string commit);

  Result<bool> fetch(const PieceRequest& request, std::span<std::byte> bytes) override;

 private:
  // Adds the bytes received to `done`, even if it then fails.
  std::optional<HubFailure> fetch_part(const HubFile& file, ByteRange range,
                                       std::span<std::byte> bytes, size_t& done);

  const HubOptions options_;
  const ModelId id_;
  const std::string commit_;
  HttpClient client_;
  // Where the hub redirected each file, so that not every piece asks it again. By hash.
  std::map<std::string, std::string> redirects_;
};

}  // namespace lockstep
