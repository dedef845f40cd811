// links: cluster
// Any accepted message between nodes is encoded so that it is accepted again and encoded the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cluster/brain/messages.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = decode_cluster_message({reinterpret_cast<const char*>(data), size});
  if (!message.ok()) return 0;
  if (std::holds_alternative<ForeignMessage>(message.value())) return 0;
  const std::string written = encode_cluster_message(message.value());
  const auto again = decode_cluster_message(written);
  LOCKSTEP_CHECK(again.ok());
  LOCKSTEP_CHECK(again.value().index() == message.value().index());
  LOCKSTEP_CHECK(encode_cluster_message(again.value()) == written);
  return 0;
}
