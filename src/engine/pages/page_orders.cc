#include "engine/pages/page_orders.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// Followed by the records of all orders, in the order of their execution.
struct OrdersHeader {
  uint16_t saves;
  uint16_t state_saves;
  uint16_t loads;
  uint16_t state_loads;

  bool is_sound(bool has_windows) const {
    const size_t saves_max = has_windows ? kWindowSavesMax : kStateSavesMax;
    const size_t loads_max = has_windows ? kWindowLoadsMax : kStateLoadsMax;
    return saves <= kPageSavesMax && state_saves <= saves_max && loads <= kPageLoadsMax &&
           state_loads <= loads_max;
  }
  size_t orders() const { return size_t{saves} + state_saves + loads + state_loads; }
};

struct Record {
  int32_t number;  // of the page, the state or the window page
  PageKey key;
};
static_assert(sizeof(Record) == sizeof(int32_t) + sizeof(PageKey));  // no gaps

Record record_of(const PageOrder& order) {
  return {order.page, order.key};
}
Record record_of(const StateOrder& order) {
  return {order.state, order.key};
}

template <class Order>
void append_list(const std::vector<Order>& orders, std::vector<std::byte>& bytes) {
  for (const Order& order : orders) {
    const Record record = record_of(order);
    const auto* from = reinterpret_cast<const std::byte*>(&record);
    bytes.insert(bytes.end(), from, from + sizeof(record));
  }
}

// False if one names an invalid page or state; there are `most` of them.
template <class Order>
bool take_orders(std::span<const std::byte>& bytes, size_t count, int most,
                 std::vector<Order>& orders) {
  for (size_t i = 0; i < count; ++i) {
    Record record;
    std::memcpy(&record, bytes.data(), sizeof(record));
    bytes = bytes.subspan(sizeof(record));
    if (record.number < 0 || record.number >= most) return false;
    orders.push_back({record.number, record.key});
  }
  return true;
}

// Made only when needed: it allocates.
Error broken_orders() {
  return Error{ErrorCode::kCorrupt, "rank 0 sent orders for pages that break the group's limits"};
}

}  // namespace

void PageOrders::clear() {
  saves.clear();
  state_saves.clear();
  loads.clear();
  state_loads.clear();
}

PageOutcome least_of(PageOutcome a, PageOutcome b) {
  return {.saved = std::min(a.saved, b.saved), .loaded = std::min(a.loaded, b.loaded)};
}

size_t page_orders_bytes_max() {
  return sizeof(OrdersHeader) +
         (kPageSavesMax + kWindowSavesMax + kPageLoadsMax + kWindowLoadsMax) * sizeof(Record);
}

void append_page_orders(const PageOrders& orders, std::vector<std::byte>& bytes) {
  const OrdersHeader header{
      static_cast<uint16_t>(orders.saves.size()), static_cast<uint16_t>(orders.state_saves.size()),
      static_cast<uint16_t>(orders.loads.size()), static_cast<uint16_t>(orders.state_loads.size())};
  const auto* from = reinterpret_cast<const std::byte*>(&header);
  bytes.insert(bytes.end(), from, from + sizeof(header));
  append_list(orders.saves, bytes);
  append_list(orders.state_saves, bytes);
  append_list(orders.loads, bytes);
  append_list(orders.state_loads, bytes);
}

Result<std::span<const std::byte>> take_page_orders(std::span<const std::byte> bytes,
                                                    const BatchLimits& limits, PageOrders& orders) {
  orders.clear();
  OrdersHeader header;
  if (bytes.size() < sizeof(header)) return broken_orders();
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes = bytes.subspan(sizeof(header));
  const bool has_windows = limits.window_pages > 0;
  const int states = has_windows ? limits.window_pages : limits.states;
  if (!header.is_sound(has_windows) || bytes.size() < header.orders() * sizeof(Record)) {
    return broken_orders();
  }
  const bool are_sound = take_orders(bytes, header.saves, limits.pages, orders.saves) &&
                         take_orders(bytes, header.state_saves, states, orders.state_saves) &&
                         take_orders(bytes, header.loads, limits.pages, orders.loads) &&
                         take_orders(bytes, header.state_loads, states, orders.state_loads);
  if (!are_sound) return broken_orders();
  return bytes;
}

}  // namespace lockstep
