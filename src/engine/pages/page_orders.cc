#include "engine/pages/page_orders.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// Followed by the records of all saves, then of all loads.
struct OrdersHeader {
  uint32_t saves;
  uint32_t loads;
};

struct Record {
  int32_t page;
  PageKey key;
};
static_assert(sizeof(Record) == sizeof(int32_t) + sizeof(PageKey));  // no gaps

void append_list(const std::vector<PageOrder>& orders, std::vector<std::byte>& bytes) {
  for (const PageOrder& order : orders) {
    const Record record{order.page, order.key};
    const auto* from = reinterpret_cast<const std::byte*>(&record);
    bytes.insert(bytes.end(), from, from + sizeof(record));
  }
}

// False if one names an invalid page.
bool take_orders(std::span<const std::byte>& bytes, size_t count, int pages,
                 std::vector<PageOrder>& orders) {
  for (size_t i = 0; i < count; ++i) {
    Record record;
    std::memcpy(&record, bytes.data(), sizeof(record));
    bytes = bytes.subspan(sizeof(record));
    if (record.page < 0 || record.page >= pages) return false;
    orders.push_back({record.page, record.key});
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
  loads.clear();
}

PageOutcome least_of(PageOutcome a, PageOutcome b) {
  return {.saved = std::min(a.saved, b.saved), .loaded = std::min(a.loaded, b.loaded)};
}

size_t page_orders_bytes_max() {
  return sizeof(OrdersHeader) + (kPageSavesMax + kPageLoadsMax) * sizeof(Record);
}

void append_page_orders(const PageOrders& orders, std::vector<std::byte>& bytes) {
  const OrdersHeader header{static_cast<uint32_t>(orders.saves.size()),
                            static_cast<uint32_t>(orders.loads.size())};
  const auto* from = reinterpret_cast<const std::byte*>(&header);
  bytes.insert(bytes.end(), from, from + sizeof(header));
  append_list(orders.saves, bytes);
  append_list(orders.loads, bytes);
}

Result<std::span<const std::byte>> take_page_orders(std::span<const std::byte> bytes,
                                                    const BatchLimits& limits, PageOrders& orders) {
  orders.clear();
  OrdersHeader header;
  if (bytes.size() < sizeof(header)) return broken_orders();
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes = bytes.subspan(sizeof(header));
  if (header.saves > kPageSavesMax || header.loads > kPageLoadsMax) return broken_orders();
  if (bytes.size() < (header.saves + header.loads) * sizeof(Record)) return broken_orders();
  if (!take_orders(bytes, header.saves, limits.pages, orders.saves)) return broken_orders();
  if (!take_orders(bytes, header.loads, limits.pages, orders.loads)) return broken_orders();
  return bytes;
}

}  // namespace lockstep
