#include "engine/pages/page_mover.h"

#include <algorithm>

#include "base/check.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

PageMover::PageMover(Model& model, PageStore* store) : model_(model), store_(store) {
  if (!store) return;
  LOCKSTEP_CHECK(store->page_bytes() == model.page_shape().page_bytes());
  page_.resize(store->page_bytes());
}

// A rank without heads has nothing to do. Saves come first: a load may overwrite a saved page.
Result<PageOutcome> PageMover::move(const PageOrders& orders, Group& group) {
  PageOutcome own{PageOutcome::kNoStore, PageOutcome::kNoStore};
  if (model_.page_shape().page_bytes() == 0) {
    own = {static_cast<int32_t>(orders.saves.size()), static_cast<int32_t>(orders.loads.size())};
  } else if (store_) {
    own.saved = TRY(save(orders.saves));
    own.loaded = load(orders.loads);
  }
  return agree(own, group);
}

Result<int32_t> PageMover::save(std::span<const PageOrder> orders) {
  int32_t saved = 0;
  for (const PageOrder& order : orders) {
    const auto bytes = store_->begin_save();
    if (!bytes) break;
    TRY(model_.read_page(order.page, *bytes));
    store_->save(order.key);
    ++saved;
  }
  return saved;
}

int32_t PageMover::load(std::span<const PageOrder> orders) {
  const auto end = Clock::now() + kPageLoadTimeMax;
  int32_t loaded = 0;
  for (const PageOrder& order : orders) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0 || !store_->load(order.key, page_, left).ok()) break;
    model_.write_page(order.page, page_);
    ++loaded;
  }
  return loaded;
}

Result<PageOutcome> PageMover::agree(PageOutcome own, Group& group) {
  if (group.size() == 1) return own;
  std::vector<PageOutcome> all(static_cast<size_t>(group.size()), own);
  std::vector<std::span<std::byte>> parts;
  for (PageOutcome& one : all) parts.push_back(std::as_writable_bytes(std::span(&one, 1)));
  TRY(group.all_gather(parts));
  for (const PageOutcome& one : all) own = least_of(own, one);
  return own;
}

}  // namespace lockstep
