#include "engine/store/page_index.h"

#include <algorithm>

#include "engine/store/page_file.h"

namespace lockstep {

void PageIndex::replace(size_t bucket, const PageFiles& files) {
  Bucket fresh;
  for (const auto& [key, parts] : files) fresh[key] = {parts, is_covered_by(parts)};
  const auto whole = [](const Bucket& pages) {
    return std::count_if(pages.begin(), pages.end(),
                         [](const auto& page) { return page.second.is_whole; });
  };
  whole_pages_ -= static_cast<size_t>(whole(buckets_[bucket]));
  whole_pages_ += static_cast<size_t>(whole(fresh));
  buckets_[bucket] = std::move(fresh);
}

void PageIndex::add(const PageKey& key, const PageShape& part) {
  Bucket& bucket = buckets_[page_bucket(key)];
  if (bucket.size() >= kBucketFilesMax) return;
  Entry& entry = bucket[key];
  if (std::find(entry.parts.begin(), entry.parts.end(), part) == entry.parts.end()) {
    entry.parts.push_back(part);
  }
  const bool was_whole = entry.is_whole;
  entry.is_whole = is_covered_by(entry.parts);
  if (entry.is_whole && !was_whole) ++whole_pages_;
}

void PageIndex::erase(const PageKey& key) {
  Bucket& bucket = buckets_[page_bucket(key)];
  const auto entry = bucket.find(key);
  if (entry == bucket.end()) return;
  if (entry->second.is_whole) --whole_pages_;
  bucket.erase(entry);
}

bool PageIndex::is_whole(const PageKey& key) const {
  const Entry* entry = find(key);
  return entry != nullptr && entry->is_whole;
}

std::vector<PageShape> PageIndex::parts_of(const PageKey& key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return {};
  std::vector<PageShape> parts = entry->parts;
  std::sort(parts.begin(), parts.end(), [this](const PageShape& a, const PageShape& b) {
    return common_part(wanted_, a).blocks() > common_part(wanted_, b).blocks();
  });
  return parts;
}

const PageIndex::Entry* PageIndex::find(const PageKey& key) const {
  const Bucket& bucket = buckets_[page_bucket(key)];
  const auto entry = bucket.find(key);
  return entry == bucket.end() ? nullptr : &entry->second;
}

bool PageIndex::is_covered_by(const std::vector<PageShape>& parts) const {
  const bool one_is_enough = std::any_of(parts.begin(), parts.end(), [this](const PageShape& part) {
    return common_part(wanted_, part).blocks() == wanted_.blocks();
  });
  if (one_is_enough || parts.size() < 2) return one_is_enough;
  PagePart page{.shape = wanted_, .is_there = std::vector<bool>(wanted_.blocks())};
  for (const PageShape& part : parts) page.mark(part);
  return page.is_whole();
}

}  // namespace lockstep
