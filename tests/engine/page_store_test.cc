#include "engine/store/page_store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/hex.h"
#include "engine/store/page_file.h"
#include "engine/store/page_sweep.h"
#include "support/comes_true.h"
#include "support/spoiled_file.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{20'000};
constexpr uint64_t kFileBytes = 4096;  // disk space charged for a page of these shapes
constexpr PageShape kWhole{
    .layer_begin = 0, .layer_end = 3, .head_begin = 0, .head_end = 4, .block_bytes = 16};

PageShape part_of(int layer_begin, int layer_end, int head_begin, int head_end) {
  return {layer_begin, layer_end, head_begin, head_end, kWhole.block_bytes};
}

PageKey key_of(int value) {
  PageKey key{};
  key[0] = static_cast<std::byte>(value * 37);  // spread over the folders
  key[31] = static_cast<std::byte>(value);
  return key;
}

Digest model_of(int value) {
  Digest model{};
  model[5] = static_cast<std::byte>(value);
  return model;
}

// The page of a rank with this shape: bytes that depend only on key, layer and head.
std::vector<std::byte> page_of(const PageKey& key, const PageShape& shape) {
  std::vector<std::byte> page;
  for (int layer = shape.layer_begin; layer < shape.layer_end; ++layer) {
    for (int head = shape.head_begin; head < shape.head_end; ++head) {
      for (size_t i = 0; i < shape.block_bytes; ++i) {
        page.push_back(key[31] ^
                       static_cast<std::byte>(layer * 50 + head * 17 + static_cast<int>(i)));
      }
    }
  }
  return page;
}

std::unique_ptr<PageStore> open_store(const fs::path& folder, const PageShape& shape = kWhole,
                                      uint64_t bytes_max = 100 * kFileBytes, int model = 1) {
  auto store = PageStore::open(
      {.folder = folder, .bytes_max = bytes_max, .model = model_of(model), .shape = shape});
  REQUIRE(store.ok());
  return std::move(store.value());
}

// Returns when all earlier requests are done.
void save(PageStore& store, const PageKey& key, const PageShape& shape = kWhole) {
  const auto memory = store.begin_save();
  REQUIRE(memory);
  const std::vector<std::byte> page = page_of(key, shape);
  REQUIRE(memory->size() == page.size());
  std::copy(page.begin(), page.end(), memory->begin());
  store.save(key);
  REQUIRE(store.flush(kPatience).ok());
}

Status load(PageStore& store, const PageKey& key, const PageShape& shape = kWhole) {
  std::vector<std::byte> page(store.page_bytes());
  Status status = store.load(key, page, kPatience);
  if (status.ok()) CHECK(page == page_of(key, shape));
  return status;
}

fs::path file_of(const fs::path& folder, const PageKey& key, const PageShape& shape = kWhole,
                 int model = 1) {
  return folder / to_hex(model_of(model)) / to_hex(std::span(key).first(1)) /
         page_file_name(key, shape);
}

}  // namespace

TEST_CASE("page store: a page that one process saves is loaded by a later one") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "a" / "pages";
  {
    auto store = open_store(folder);
    CHECK(store->page_bytes() == kWhole.page_bytes());
    CHECK_FALSE(store->contains(key_of(1)));
    CHECK(load(*store, key_of(1)).error().code == ErrorCode::kNotFound);
    save(*store, key_of(1));
    CHECK(store->contains(key_of(1)));
    CHECK(load(*store, key_of(1)).ok());
    CHECK(store->counts().saved == 1);
  }
  CHECK(fs::status(folder).permissions() == fs::perms(0700));
  CHECK(fs::status(file_of(folder, key_of(1))).permissions() == fs::perms(0600));
  auto store = open_store(folder);
  CHECK(store->contains(key_of(1)));
  CHECK_FALSE(store->contains(key_of(2)));
  CHECK(load(*store, key_of(1)).ok());
  const PageStore::Counts counts = store->counts();
  CHECK(counts.pages == 1);
  CHECK(counts.bytes == kFileBytes);
  CHECK(counts.loaded == 1);
  CHECK(counts.saved == 0);
  CHECK(counts.dropped == 0);
}

TEST_CASE("page store: another model's pages are not found") {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0700));
  save(*open_store(folder.path()), key_of(1));
  CHECK_FALSE(open_store(folder.path(), kWhole, 1 << 20, 2)->contains(key_of(1)));
}

TEST_CASE("page store: pages can be used by any placement of the model") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  const PageKey key = key_of(9);
  const std::vector<PageShape> ranks{part_of(0, 3, 0, 2), part_of(0, 3, 2, 4)};
  SUBCASE("two ranks' files make one rank's page") {
    save(*open_store(folder, ranks[0]), key, ranks[0]);
    CHECK_FALSE(open_store(folder)->contains(key));
    save(*open_store(folder, ranks[1]), key, ranks[1]);
    auto whole = open_store(folder);
    CHECK(whole->contains(key));
    CHECK(load(*whole, key).ok());
  }
  SUBCASE("one rank's file has the pages of two, and of stages") {
    save(*open_store(folder), key);
    for (const PageShape& rank : {ranks[0], ranks[1], part_of(1, 3, 0, 4), part_of(2, 3, 3, 4)}) {
      auto store = open_store(folder, rank);
      CHECK(store->contains(key));
      CHECK(load(*store, key, rank).ok());
    }
  }
  SUBCASE("parts that overlap, and that leave a hole") {
    for (const PageShape& part : {part_of(0, 2, 0, 3), part_of(1, 3, 0, 4)}) {
      save(*open_store(folder, part), key, part);
    }
    CHECK_FALSE(open_store(folder)->contains(key));  // layer 0 of head 3
    const PageShape last = part_of(0, 1, 3, 4);
    save(*open_store(folder, last), key, last);
    CHECK(load(*open_store(folder), key).ok());
  }
  SUBCASE("ranks that hold the same heads write one file") {
    auto first = open_store(folder, ranks[0]), second = open_store(folder, ranks[0]);
    save(*first, key, ranks[0]);
    save(*second, key, ranks[0]);
    CHECK(second->counts().bytes == kFileBytes);
    CHECK(load(*second, key, ranks[0]).ok());
  }
}

TEST_CASE("page store: another process's page is found after it was asked for") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  std::atomic<int> calls{0};
  auto asking = PageStore::open({.folder = folder,
                                 .bytes_max = 1 << 20,
                                 .model = model_of(1),
                                 .shape = kWhole,
                                 .on_saved = [&] { ++calls; }});
  REQUIRE(asking.ok());
  auto writing = open_store(folder);
  CHECK_FALSE(asking.value()->contains(key_of(3)));
  save(*writing, key_of(3));
  CHECK(comes_true([&] { return asking.value()->contains(key_of(3)); }));
  CHECK(comes_true([&] { return calls > 0; }));
  CHECK(load(*asking.value(), key_of(3)).ok());
}

TEST_CASE("page store: one limit holds for all models; least recently used pages are removed") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  constexpr uint64_t kLimit = 8 * kFileBytes;
  auto first = open_store(folder, kWhole, kLimit, 1),
       second = open_store(folder, kWhole, kLimit, 2);
  for (int i = 0; i < 4; ++i) save(*first, key_of(i));
  for (int i = 0; i < 4; ++i) save(*second, key_of(i));
  CHECK(first->counts().dropped + second->counts().dropped == 0);
  CHECK(load(*first, key_of(0)).ok());  // now used later than the others
  save(*second, key_of(4));
  const auto files = [&](int model) {
    std::set<int> found;
    for (int i = 0; i < 16; ++i) {
      if (fs::exists(file_of(folder, key_of(i), kWhole, model))) found.insert(i);
    }
    return found;
  };
  CHECK(files(1) == std::set<int>{0, 2, 3});
  CHECK(files(2) == std::set<int>{0, 1, 2, 3, 4});
  for (int i = 5; i < 14; ++i) save(*second, key_of(i));
  CHECK(files(1).empty());
  CHECK(files(2).contains(13));
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (parse_page_file_name(entry.path().filename().string())) bytes += kFileBytes;
  }
  CHECK(bytes <= kLimit);
  CHECK(bytes == second->counts().bytes);
  // The first process has not rescanned the folder: it finds at load time that its page is gone.
  CHECK(load(*first, key_of(0)).error().code == ErrorCode::kNotFound);
  CHECK_FALSE(first->contains(key_of(0)));
  CHECK(first->counts().dropped == 0);
  CHECK(comes_true([&] { return second->counts().pages == files(2).size(); }));
}

TEST_CASE("page store: a process with a lower limit makes room when it opens") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  for (int i = 0; i < 6; ++i) save(*open_store(folder), key_of(i));
  auto store = open_store(folder, kWhole, 3 * kFileBytes);
  CHECK(store->counts().bytes <= 3 * kFileBytes);
  CHECK_FALSE(store->contains(key_of(0)));
  CHECK(store->contains(key_of(5)));
}

TEST_CASE("page store: a page larger than the limit is dropped, and the store keeps reading") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  save(*open_store(folder), key_of(1));
  auto store = open_store(folder, kWhole, kFileBytes);
  CHECK(store->contains(key_of(1)));
  const PageShape large{.layer_begin = 0,
                        .layer_end = 8,
                        .head_begin = 0,
                        .head_end = 8,
                        .block_bytes = kWhole.block_bytes * 16};
  auto other = open_store(folder, large, kFileBytes, 2);
  save(*other, key_of(2), large);
  CHECK(other->counts().dropped == 1);
  CHECK(other->counts().saved == 0);
  CHECK_FALSE(other->contains(key_of(2)));
  CHECK_FALSE(other->has_room());  // for a while
  CHECK_FALSE(other->begin_save());
  CHECK(load(*store, key_of(1)).ok());
}

TEST_CASE("page store: broken files make a load fail, and are removed") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  save(*open_store(folder), key_of(1));
  const fs::path file = file_of(folder, key_of(1));
  SUBCASE("a changed byte") {
    spoil_last_byte(file);
  }
  SUBCASE("cut short") {
    fs::resize_file(file, fs::file_size(file) - 1);
  }
  SUBCASE("empty") {
    fs::resize_file(file, 0);
  }
  SUBCASE("another page's") {
    save(*open_store(folder), key_of(2));
    fs::copy_file(file_of(folder, key_of(2)), file, fs::copy_options::overwrite_existing);
  }
  SUBCASE("another model's") {
    save(*open_store(folder, kWhole, 1 << 20, 2), key_of(1));
    fs::copy_file(file_of(folder, key_of(1), kWhole, 2), file,
                  fs::copy_options::overwrite_existing);
  }
  auto store = open_store(folder);
  REQUIRE(store->contains(key_of(1)));
  CHECK(load(*store, key_of(1)).error().code == ErrorCode::kCorrupt);
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(store->contains(key_of(1)));
  CHECK(store->counts().dropped == 1);
  save(*store, key_of(1));  // computed again
  CHECK(load(*store, key_of(1)).ok());
}

TEST_CASE("page store: where one file is broken another one is used") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  const PageShape half = part_of(0, 3, 0, 2);
  save(*open_store(folder, half), key_of(1), half);
  save(*open_store(folder), key_of(1));
  SUBCASE("the rank's own") {
    spoil_last_byte(file_of(folder, key_of(1), half));
  }
  SUBCASE("the larger one") {
    spoil_last_byte(file_of(folder, key_of(1)));
  }
  auto store = open_store(folder, half);
  CHECK(load(*store, key_of(1), half).ok());
}

TEST_CASE("page store: a forgotten page is gone, with all its parts") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  const PageShape half = part_of(0, 3, 0, 2);
  save(*open_store(folder, half), key_of(1), half);
  auto store = open_store(folder);
  save(*store, key_of(1));
  save(*store, key_of(2));
  store->forget(key_of(1));
  CHECK_FALSE(store->contains(key_of(1)));
  CHECK(load(*store, key_of(1)).error().code == ErrorCode::kNotFound);
  CHECK(comes_true([&] { return !fs::exists(file_of(folder, key_of(1))); }));
  CHECK(comes_true([&] { return !fs::exists(file_of(folder, key_of(1), half)); }));
  CHECK(load(*store, key_of(2)).ok());
  CHECK(comes_true([&] { return store->counts().bytes == kFileBytes; }));
}

TEST_CASE("page store: a dead writer's temporary file is removed, a live one's is kept") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  save(*open_store(folder), key_of(1));
  const fs::path bucket = file_of(folder, key_of(1)).parent_path();
  std::ofstream(bucket / "unfinished-dead01") << "half a page";
  std::ofstream(bucket / "unfinished-alive1") << "half a page";
  std::ofstream(bucket / "unfinished-new001") << "not locked yet";
  std::ofstream(bucket / "a note") << "of somebody";
  const auto before = fs::file_time_type::clock::now() - 2 * kLeftOverAgeMin;
  fs::last_write_time(bucket / "unfinished-dead01", before);
  fs::last_write_time(bucket / "unfinished-alive1", before);
  const UniqueFd held(::open((bucket / "unfinished-alive1").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(held.get(), LOCK_EX | LOCK_NB) == 0);
  auto store = open_store(folder);
  CHECK_FALSE(fs::exists(bucket / "unfinished-dead01"));
  CHECK(fs::exists(bucket / "unfinished-alive1"));
  CHECK(fs::exists(bucket / "unfinished-new001"));
  CHECK(fs::exists(bucket / "a note"));
  CHECK(load(*store, key_of(1)).ok());
}

TEST_CASE("page store: an unusable folder is one sentence") {
  const TemporaryFolder parent;
  const fs::path file = parent.path() / "file";
  std::ofstream(file) << "no folder";
  const auto error_of = [](const fs::path& folder) {
    const auto store = PageStore::open(
        {.folder = folder, .bytes_max = 1 << 20, .model = model_of(1), .shape = kWhole});
    return store.ok() ? Error{ErrorCode::kInternal, ""} : store.error();
  };
  CHECK(
      error_of(file / "pages").message.starts_with((file / "pages").string() + " cannot be made"));
  CHECK(error_of(file).message.find("is not a folder owned by this user") != std::string::npos);
  const fs::path open_folder = parent.path() / "open";
  fs::create_directory(open_folder);
  fs::permissions(open_folder, fs::perms(0755));
  CHECK(error_of(open_folder).message.find("run chmod 700 on it") != std::string::npos);
  const fs::path read_only = parent.path() / "read-only";
  fs::create_directory(read_only);
  fs::permissions(read_only, fs::perms(0500));
  if (::geteuid() != 0) CHECK(error_of(read_only).message.find("cannot be") != std::string::npos);
  fs::permissions(read_only, fs::perms(0700));
}

TEST_CASE("page store: a store whose disk hangs ends in time, and is off until it responds") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  save(*open_store(folder), key_of(2));
  auto store = open_store(folder);
  save(*store, key_of(1));
  const fs::path file = file_of(folder, key_of(1));
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);  // opening it blocks
  std::vector<std::byte> page(store->page_bytes());
  const Status status = store->load(key_of(1), page, milliseconds(50));
  CHECK(status.error().code == ErrorCode::kTimeout);
  CHECK_FALSE(store->contains(key_of(2)));
  CHECK_FALSE(store->has_room());
  CHECK_FALSE(store->begin_save());
  CHECK(store->load(key_of(2), page, kPatience).error().code == ErrorCode::kNotFound);
  store->begin_epoch();
  CHECK_FALSE(store->contains(key_of(2)));  // it still hangs
  const auto release = [&] {
    return comes_true(
        [&] { return UniqueFd(::open(file.c_str(), O_WRONLY | O_NONBLOCK)).is_open(); });
  };
  SUBCASE("and answers again") {
    REQUIRE(release());
    CHECK(comes_true([&] { return store->contains(key_of(2)); }));
    CHECK(load(*store, key_of(2)).ok());
    CHECK_FALSE(store->contains(key_of(1)));
  }
  SUBCASE("while the store ends") {
    store.reset();
    REQUIRE(release());
  }
}

TEST_CASE("page store: pages wait for the disk in bounded memory, and can be loaded meanwhile") {
  const TemporaryFolder parent;
  std::atomic<int> calls{0};
  auto opened = PageStore::open({.folder = parent.path() / "pages",
                                 .bytes_max = 1 << 20,
                                 .model = model_of(1),
                                 .shape = kWhole,
                                 .on_saved = [&] { ++calls; }});
  REQUIRE(opened.ok());
  PageStore& store = *opened.value();
  const auto memory = store.begin_save();
  REQUIRE(memory);
  CHECK(store.begin_save()->data() == memory->data());  // until it is given back
  int given = 0;
  for (int i = 0; i < 40; ++i) {
    const auto next = store.begin_save();
    if (!next) continue;
    const auto page = page_of(key_of(i), kWhole);
    std::copy(page.begin(), page.end(), next->begin());
    store.save(key_of(i));
    ++given;
    CHECK(store.contains(key_of(i)));
    CHECK(load(store, key_of(i)).ok());
  }
  CHECK(given >= static_cast<int>(staged_pages(kWhole.page_bytes())));
  REQUIRE(store.flush(kPatience).ok());
  CHECK(store.counts().saved == static_cast<uint64_t>(given));
  CHECK(comes_true([&] { return calls >= given; }));
  CHECK(staged_pages(size_t{1} << 40) == 1);
  CHECK(page_staging_bytes(1000) == 6000);
}

namespace {

std::unique_ptr<PageStore> open_states(const fs::path& folder, uint64_t bytes_max) {
  auto store = PageStore::open({.folder = folder,
                                .bytes_max = bytes_max,
                                .model = model_of(1),
                                .shape = kWhole,
                                .kind = PageFileKind::kState});
  REQUIRE(store.ok());
  return std::move(store.value());
}

}  // namespace

TEST_CASE("page store: a page and the state where it ends have one key and do not mix") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  auto pages = open_store(folder);
  auto states = open_states(folder, 100 * kFileBytes);
  save(*states, key_of(1));
  CHECK(fs::exists(file_of(folder, key_of(1)).string() + ".state"));
  CHECK_FALSE(fs::exists(file_of(folder, key_of(1))));
  CHECK_FALSE(open_store(folder)->contains(key_of(1)));
  save(*pages, key_of(1));
  pages->forget(key_of(1));
  CHECK(comes_true([&] { return !fs::exists(file_of(folder, key_of(1))); }));
  CHECK(load(*states, key_of(1)).ok());
  CHECK(load(*open_states(folder, 100 * kFileBytes), key_of(1)).ok());
  save(*pages, key_of(2));  // a page under a state's name
  fs::copy_file(file_of(folder, key_of(2)), file_of(folder, key_of(2)).string() + ".state");
  CHECK(load(*open_states(folder, 100 * kFileBytes), key_of(2)).error().code ==
        ErrorCode::kCorrupt);
  CHECK_FALSE(fs::exists(file_of(folder, key_of(2)).string() + ".state"));
  CHECK(load(*pages, key_of(2)).ok());
}

TEST_CASE("page store: in a full folder states give way to older pages, down to their share") {
  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "pages";
  const auto count = [&](bool are_states) {
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      files += name.size() > 64 && name.ends_with(".state") == are_states ? 1 : 0;
    }
    return files;
  };
  auto pages = open_store(folder, kWhole, 20 * kFileBytes);
  auto states = open_states(folder, 20 * kFileBytes);
  for (int i = 0; i < 8; ++i) save(*pages, key_of(i));
  for (int i = 0; i < 12; ++i) save(*states, key_of(i));
  CHECK(count(false) == 8);
  CHECK(count(true) == 12);
  for (int i = 20; i < 22; ++i) save(*states, key_of(i));  // the folder is full
  CHECK(count(false) == 8);
  CHECK(count(true) < 13);
  CHECK(states->contains(key_of(21)));
  for (int i = 30; i < 60; ++i) save(*pages, key_of(i));
  CHECK(count(false) + count(true) <= 20);
  CHECK(count(true) == 0);  // they are older than all pages that are left
}

TEST_CASE("page store: a state larger than the share of states is not kept") {
  const TemporaryFolder parent;
  auto states = open_states(parent.path() / "pages", 2 * kFileBytes - 1);
  save(*states, key_of(1));
  CHECK(states->counts().dropped == 1);
  CHECK_FALSE(states->contains(key_of(1)));
  CHECK(state_staging_bytes(1000) == 6000);
  CHECK(state_staging_bytes(size_t{100} << 20) == size_t{300} << 20);
}
