#include "node/disks/disk_messages.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

namespace {

DiskReport report_of(size_t models) {
  DiskReport report{.free_bytes = 123, .models = {}};
  for (size_t i = 0; i < models; ++i) {
    report.models.push_back({.name = "org/model-" + std::to_string(i),
                             .bytes = 10 + i,
                             .whole_bytes = 20 + i,
                             .is_complete = i % 2 == 0,
                             .is_share = i % 3 == 0,
                             .is_removable = true,
                             .path = "/cache/" + std::to_string(i)});
  }
  return report;
}

}  // namespace

TEST_CASE("questions about a disk arrive unchanged, and no others") {
  const auto list = decode_disk_ask(encode_disk_ask({.kind = DiskAsk::Kind::kList}));
  REQUIRE(list.ok());
  CHECK(list.value().kind == DiskAsk::Kind::kList);
  const auto removal =
      decode_disk_ask(encode_disk_ask({.kind = DiskAsk::Kind::kRemove, .model = "org/a@main"}));
  REQUIRE(removal.ok());
  CHECK(removal.value().model == "org/a@main");
  for (const std::string& frame :
       {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"ask":"format"})"),
        std::string(R"({"ask":"remove"})"), std::string(R"({"ask":3})"),
        R"({"ask":"remove","model":")" + std::string(kDiskTextBytesMax + 1, 'a') + "\"}"}) {
    CHECK_MESSAGE(!decode_disk_ask(frame).ok(), frame.substr(0, 40));
  }
}

TEST_CASE("a list of models arrives unchanged") {
  const DiskAsk ask{.kind = DiskAsk::Kind::kList};
  const auto got = decode_disk_answer(ask, encode_disk_answer(ask, DiskAnswer{report_of(5), 0}));
  REQUIRE(got.ok());
  CHECK(dump_json(disk_json(got.value().disk)) == dump_json(disk_json(report_of(5))));
  CHECK(got.value().disk.free_bytes == 123);
  CHECK(got.value().disk.models[3].is_share);
}

TEST_CASE("a long list is cut to what a frame may hold, and says how much is missing") {
  DiskReport report = report_of(kDiskModelsMax);
  for (DiskModel& model : report.models) model.path = "/" + std::string(3'000, 'p');
  const DiskAsk ask{.kind = DiskAsk::Kind::kList};
  const std::string frame = encode_disk_answer(ask, DiskAnswer{report, 0});
  CHECK(frame.size() < (1 << 20));
  const auto got = decode_disk_answer(ask, frame);
  REQUIRE(got.ok());
  CHECK(got.value().disk.left_out > 0);
  CHECK(got.value().disk.left_out + got.value().disk.models.size() == kDiskModelsMax);
}

TEST_CASE("an error keeps its kind and its sentence, and invalid answers are corrupt") {
  const DiskAsk ask{.kind = DiskAsk::Kind::kRemove, .model = "org/a"};
  const auto refused = decode_disk_answer(
      ask, encode_disk_answer(ask, Error{ErrorCode::kNotFound, "org/a is not there"}));
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kNotFound);
  CHECK(refused.error().message == "org/a is not there");
  const auto other =
      decode_disk_answer(ask, encode_disk_answer(ask, Error{ErrorCode::kPeerLost, "gone"}));
  CHECK(other.error().code == ErrorCode::kInternal);
  const auto done = decode_disk_answer(ask, encode_disk_answer(ask, DiskAnswer{{}, 77}));
  REQUIRE(done.ok());
  CHECK(done.value().removed_bytes == 77);
  for (const char* frame : {"", "{", "{}", R"({"removed_bytes":-1})", R"({"removed_bytes":"7"})",
                            R"({"error":3})", R"({"error":"not_found"})"}) {
    const auto got = decode_disk_answer(ask, frame);
    CHECK_MESSAGE(!got.ok(), frame);
    if (!got.ok()) CHECK_MESSAGE(got.error().code == ErrorCode::kCorrupt, frame);
  }
  const DiskAsk list{.kind = DiskAsk::Kind::kList};
  for (const char* frame : {R"({"models":{}})", R"({"models":[{}]})", R"({"models":[3]})",
                            R"({"models":[],"free_bytes":-3})"}) {
    CHECK_MESSAGE(!decode_disk_answer(list, frame).ok(), frame);
  }
}
