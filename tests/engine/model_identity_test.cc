#include "engine/run/model_identity.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "base/files/piece_journal.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

const fs::file_time_type kThen = fs::file_time_type::clock::now() - std::chrono::hours(100);

// A weights file as far as the identity reads it: a head with its length, and bytes.
std::string weights(const std::string& head, size_t size) {
  const uint64_t length = head.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file + head + std::string(size, 'w');
}

struct Folder {
  TemporaryFolder folder;

  Folder() {
    write("config.json", "{}");
    write("model.safetensors", weights("{\"a\": 1}", 20'000));
  }
  void write(const std::string& name, const std::string& content) const {
    fs::last_write_time(folder.write(name, content), kThen);
  }
  GroupSpec spec() const {
    GroupSpec spec;
    spec.model = folder.path();
    spec.shares = {1, 1};
    return spec;
  }
  Digest identity() const { return identity_of(spec()); }
  static Digest identity_of(const GroupSpec& spec) {
    const auto identity = model_identity(spec);
    REQUIRE(identity.ok());
    return identity.value();
  }
};

}  // namespace

TEST_CASE("model identity: the same files elsewhere are the same model") {
  const Folder here, there;
  CHECK(here.identity() == there.identity());
  CHECK(here.identity() == here.identity());
}

TEST_CASE("model identity: a checkpoint that differs in any part that counts is another model") {
  const Folder model;
  const Digest before = model.identity();
  SUBCASE("config") {
    model.write("config.json", "{ }");
  }
  SUBCASE("head") {
    model.write("model.safetensors", weights("{\"b\": 1}", 20'000));
  }
  SUBCASE("length") {
    model.write("model.safetensors", weights("{\"a\": 1}", 20'001));
  }
  SUBCASE("bytes") {
    std::string file = weights("{\"a\": 1}", 20'000);
    file[9'000] = 'x';
    model.write("model.safetensors", file);
  }
  SUBCASE("last byte") {
    std::string file = weights("{\"a\": 1}", 20'000);
    file.back() = 'x';
    model.write("model.safetensors", file);
  }
  SUBCASE("time of change") {
    fs::last_write_time(model.folder.path() / "model.safetensors", kThen + std::chrono::seconds(1));
  }
  SUBCASE("name") {
    fs::rename(model.folder.path() / "model.safetensors", model.folder.path() / "b.safetensors");
  }
  SUBCASE("one more file") {
    model.write("b.safetensors", weights("{}", 1));
  }
  CHECK(model.identity() != before);
}

TEST_CASE("model identity: files that are not part of the model do not count") {
  const Folder model;
  const Digest before = model.identity();
  model.write("README.md", "text");
  model.write("tokenizer.json", "{}");
  CHECK(model.identity() == before);
}

TEST_CASE("model identity: options count that change bits, and no others") {
  const Folder model;
  const Digest plain = model.identity();
  GroupSpec spec = model.spec();
  SUBCASE("cut, threads, limits: the same") {
    spec.shares = {3, 1, 1};
    spec.link.stages = 3;
    spec.threads = 7;
    spec.context = 99;
    spec.sequences_max = 3;
    spec.link.kind = LinkKind::kTcp;
    spec.ngrams_on_disk = true;
    CHECK(Folder::identity_of(spec) == plain);
  }
  SUBCASE("exact") {
    spec.exact = true;
    CHECK(Folder::identity_of(spec) != plain);
  }
  SUBCASE("keys and values") {
    spec.kv = kKvDefault;
    CHECK(Folder::identity_of(spec) == plain);
    spec.kv = KvKind::kF32;
    const Digest whole = Folder::identity_of(spec);
    spec.kv = KvKind::kBF16;
    const Digest rounded = Folder::identity_of(spec);
    CHECK(whole != plain);
    CHECK(rounded != plain);
    CHECK(rounded != whole);
  }
  SUBCASE("bits") {
    spec.bits = 4;
    const Digest four = Folder::identity_of(spec);
    spec.bits = 8;
    CHECK(four != plain);
    CHECK(Folder::identity_of(spec) != four);
  }
}

TEST_CASE(
    "model identity: in a hub's cache the hash in the name counts, not the bytes or the time") {
  const TemporaryFolder cache;
  const std::string hash(64, 'a'), other(64, 'b');
  cache.write("blobs/" + hash, weights("{}", 100));
  cache.write("blobs/" + other, weights("{}", 100));
  cache.write("snapshot/config.json", "{}");
  const fs::path link = cache.path() / "snapshot" / "model.safetensors";
  fs::create_symlink("../blobs/" + hash, link);
  GroupSpec spec;
  spec.model = cache.path() / "snapshot";
  const Digest before = Folder::identity_of(spec);
  fs::last_write_time(cache.path() / "blobs" / hash, kThen);
  CHECK(Folder::identity_of(spec) == before);
  // The same content, only partly downloaded.
  cache.write("blobs/" + hash + kPartialFileEnding, std::string(50, 0));
  fs::remove(link);
  fs::create_symlink("../blobs/" + hash + kPartialFileEnding, link);
  CHECK(Folder::identity_of(spec) == before);
  fs::remove(link);
  fs::create_symlink("../blobs/" + other, link);
  CHECK(Folder::identity_of(spec) != before);
}

TEST_CASE("model identity: a file with holes and no hash has no identity") {
  const Folder model;
  model.write(piece_journal_of("model.safetensors").string(), "journal");
  const auto identity = model_identity(model.spec());
  REQUIRE_FALSE(identity.ok());
  CHECK(identity.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("model identity: a GGUF model is its file and the other parts next to it") {
  const TemporaryFolder folder;
  GroupSpec spec;
  const auto write = [&](const std::string& name, const std::string& content) {
    fs::last_write_time(folder.write(name, content), kThen);
  };
  write("one.gguf", "GGUF and more");
  write("x-00001-of-00002.gguf", "GGUF first");
  write("x-00002-of-00002.gguf", "GGUF second");
  spec.model = folder.path() / "one.gguf";
  const Digest one = Folder::identity_of(spec);
  spec.model = folder.path() / "x-00001-of-00002.gguf";
  const Digest split = Folder::identity_of(spec);
  write("x-00002-of-00002.gguf", "GGUF changed");
  CHECK(Folder::identity_of(spec) != split);
  spec.model = folder.path() / "one.gguf";
  CHECK(Folder::identity_of(spec) == one);
}

TEST_CASE("model identity: random weights are identified by shape, format and layers") {
  GroupSpec spec;
  spec.model = "shape:qwen3-0.6b?format=mlx4&layers=2";
  const Digest one = Folder::identity_of(spec);
  CHECK(Folder::identity_of(spec) == one);
  spec.model = "shape:qwen3-0.6b?format=mlx4&layers=3";
  CHECK(Folder::identity_of(spec) != one);
  spec.model = "shape:qwen3-0.6b?format=fp8&layers=2";
  CHECK(Folder::identity_of(spec) != one);
}

TEST_CASE("answers of a model: the same files are the same model on any machine and ranks") {
  const Folder here, there;
  fs::last_write_time(there.folder.path() / "model.safetensors", kThen + std::chrono::hours(1));
  const auto identity = answer_identity(here.spec());
  REQUIRE(identity.ok());
  CHECK(answer_identity(there.spec()).value() == identity.value());
  CHECK(here.identity() != there.identity());
  CHECK(here.identity() != identity.value());
  GroupSpec spec = here.spec();
  spec.shares = {3, 1, 1};
  CHECK(answer_identity(spec).value() == identity.value());
  spec.bits = 8;
  CHECK(answer_identity(spec).value() != identity.value());
  there.write("config.json", "{ }");
  CHECK(answer_identity(there.spec()).value() != identity.value());
}

TEST_CASE("answers of a model: none are the same if sums are rounded on their way") {
  const Folder model;
  GroupSpec spec = model.spec();
  spec.wire = Wire::kBf16;
  const auto identity = answer_identity(spec);
  REQUIRE_FALSE(identity.ok());
  CHECK(identity.error().code == ErrorCode::kUnsupported);
}
