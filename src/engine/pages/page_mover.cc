#include "engine/pages/page_mover.h"

#include "base/check.h"

namespace lockstep {

PageMover::Place::Place(PageStore* of, const PageShape& shape) : store(of) {
  if (!store) return;
  LOCKSTEP_CHECK(store->page_bytes() == shape.page_bytes());
  bytes.resize(shape.page_bytes());
}

// A rank without a part has nothing to do.
template <class Read>
Result<bool> PageMover::Place::save(const PageKey& key, Read read) {
  if (!store) return true;
  const auto room = store->begin_save();
  if (!room) return false;
  TRY(read(*room));
  store->save(key);
  return true;
}

bool PageMover::Place::load(const PageKey& key, Clock::time_point end) {
  if (!store) return true;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return left.count() > 0 && store->load(key, bytes, left).ok();
}

PageShape stored_state_shape(const Model& model) {
  return model.limits().window_pages > 0 ? model.page_shape(StatePart::kWindow)
                                         : model.recurrent_shape();
}

PageMover::PageMover(Model& model, Stores stores)
    : model_(model),
      has_windows_(model.limits().window_pages > 0),
      pages_(stores.pages, model.page_shape(StatePart::kPage)),
      states_(stores.states, stored_state_shape(model)) {}

bool PageMover::lacks_store() const {
  return (model_.page_shape(StatePart::kPage).page_bytes() > 0 && !pages_.store) ||
         (stored_state_shape(model_).page_bytes() > 0 && !states_.store);
}

// Saves come first: a load may overwrite what is saved.
Result<PageOutcome> PageMover::move(const PageOrders& orders, Group& group) {
  PageOutcome own{PageOutcome::kNoStore, PageOutcome::kNoStore};
  if (!lacks_store()) {
    own.saved = TRY(save(orders));
    own.loaded = load(orders);
  }
  return agree(own, group);
}

Result<int32_t> PageMover::save(const PageOrders& orders) {
  int32_t saved = 0;
  for (const PageOrder& order : orders.saves) {
    const bool is_saved = TRY(pages_.save(order.key, [&](std::span<std::byte> to) {
      return model_.read_page(StatePart::kPage, order.page, to);
    }));
    if (!is_saved) return saved;
    ++saved;
  }
  for (const StateOrder& order : orders.state_saves) {
    const bool is_saved = TRY(states_.save(order.key, [&](std::span<std::byte> to) {
      return has_windows_ ? model_.read_page(StatePart::kWindow, order.state, to)
                          : model_.read_state(order.state, to);
    }));
    if (!is_saved) return saved;
    ++saved;
  }
  return saved;
}

int32_t PageMover::load(const PageOrders& orders) {
  const auto end = Clock::now() + kPageLoadTimeMax;
  int32_t loaded = 0;
  for (const PageOrder& order : orders.loads) {
    if (!pages_.load(order.key, end)) return loaded;
    if (pages_.store) model_.write_page(StatePart::kPage, order.page, pages_.bytes);
    ++loaded;
  }
  for (const StateOrder& order : orders.state_loads) {
    if (!states_.load(order.key, end)) return loaded;
    if (states_.store && has_windows_)
      model_.write_page(StatePart::kWindow, order.state, states_.bytes);
    if (states_.store && !has_windows_) model_.write_state(order.state, states_.bytes);
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
