// PageIndex: which parts of which pages are in the folder of a model, and for which pages a rank
// can read its whole part. Bounded, in memory only. The caller holds a lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "engine/store/page_store.h"

namespace lockstep {

// Folders, and this index, group pages by the first byte of their keys.
inline constexpr size_t kPageBuckets = 256;
inline constexpr size_t kBucketFilesMax = kPageFilesMax / kPageBuckets;

inline size_t page_bucket(const PageKey& key) {
  return std::to_integer<size_t>(key[0]);
}

struct PageKeyHash {
  size_t operator()(const PageKey& key) const {  // keys are digests: any of their bytes will do
    size_t hash;
    std::memcpy(&hash, key.data() + 8, sizeof(hash));
    return hash;
  }
};

// The parts that have a file.
using PageFiles = std::unordered_map<PageKey, std::vector<PageShape>, PageKeyHash>;

class PageIndex {
 public:
  // `wanted`: the part of a page that the rank holds.
  explicit PageIndex(const PageShape& wanted) : wanted_(wanted) {}

  // All pages of a bucket, replacing those known before.
  void replace(size_t bucket, const PageFiles& files);
  void add(const PageKey& key, const PageShape& part);
  void erase(const PageKey& key);

  bool is_whole(const PageKey& key) const;
  // Those with most of the wanted part first.
  std::vector<PageShape> parts_of(const PageKey& key) const;
  size_t whole_pages() const { return whole_pages_; }

 private:
  struct Entry {
    std::vector<PageShape> parts;
    bool is_whole = false;
  };
  using Bucket = std::unordered_map<PageKey, Entry, PageKeyHash>;

  const Entry* find(const PageKey& key) const;
  bool is_covered_by(const std::vector<PageShape>& parts) const;

  PageShape wanted_;
  std::array<Bucket, kPageBuckets> buckets_;
  size_t whole_pages_ = 0;
};

}  // namespace lockstep
