// links: node
// Questions and answers of other nodes about disks: nothing crashes, and what is accepted is
// written so that it reads back the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hub/files/model_id.h"
#include "node/disks/disk_messages.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  if (const auto ask = decode_disk_ask(frame); ask.ok()) {
    const auto again = decode_disk_ask(encode_disk_ask(ask.value()));
    LOCKSTEP_CHECK(again.ok() && again.value().kind == ask.value().kind);
    LOCKSTEP_CHECK(again.value().model == ask.value().model);
    (void)parse_model_id(ask.value().model);
  }
  for (const DiskAsk::Kind kind : {DiskAsk::Kind::kList, DiskAsk::Kind::kRemove}) {
    const DiskAsk ask{.kind = kind, .model = "org/name"};
    const auto answer = decode_disk_answer(ask, frame);
    if (!answer.ok()) continue;
    const auto again = decode_disk_answer(ask, encode_disk_answer(ask, answer));
    LOCKSTEP_CHECK(again.ok());
    LOCKSTEP_CHECK(again.value().removed_bytes == answer.value().removed_bytes);
    LOCKSTEP_CHECK(dump_json(disk_json(again.value().disk)) ==
                   dump_json(disk_json(answer.value().disk)));
  }
  return 0;
}
