#include "cluster/discovery/address_book.h"

#include <doctest/doctest.h>

#include "cluster/test_clock.h"
#include "support/numbered_node.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

using Hint = AddressBook::Hint;

const NetAddress kAddress{"10.0.0.2", 8601};

}  // namespace

TEST_CASE("address book: the lower id calls at once, the higher one a second later") {
  AddressBook low(node(1)), high(node(2));
  low.learn(node(2), "b", kAddress, Hint::kAlive, kNow);
  high.learn(node(1), "a", kAddress, Hint::kAlive, kNow);
  CHECK(low.take_due(kNow).size() == 1);
  CHECK(high.take_due(kNow).empty());
  CHECK(high.take_due(kNow + 1s).size() == 1);
  CHECK(low.take_due(kNow + 10s).empty());  // still in progress
}

TEST_CASE("address book: failing calls back off, a beacon makes the next one soon") {
  AddressBook book(node(1));
  book.learn(node(2), "b", kAddress, Hint::kTold, kNow);
  auto now = kNow;
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 10; ++i) {
    const auto due = book.take_due(now);
    REQUIRE(due.size() == 1);
    book.on_failed(due[0], now);
    const auto next = book.next_due();
    REQUIRE(next);
    waits.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(*next - now));
    now = *next;
  }
  CHECK(waits.front() == 500ms);
  CHECK(waits[1] == 1s);
  CHECK(waits.back() == 30s);
  const auto due = book.take_due(now);
  book.on_failed(due[0], now);
  book.learn(node(2), "b", kAddress, Hint::kAlive, now);
  CHECK(*book.next_due() == now + 1s);
  book.learn(node(2), "b", {"10.0.0.3", 8601}, Hint::kAlive, now);  // it has moved: called at once
  CHECK(*book.next_due() == now);
  CHECK(book.take_due(now)[0].address.host == "10.0.0.3");
}

TEST_CASE("address book: a connected node is not called, and called again once lost") {
  AddressBook book(node(1));
  book.want(kAddress, kNow);
  const auto due = book.take_due(kNow);
  REQUIRE(due.size() == 1);
  CHECK(!due[0].node);
  book.on_connected(node(2), "b", kAddress, &due[0]);
  CHECK(!book.next_due());
  CHECK(book.absent().empty());
  book.on_lost(node(2), kNow);
  REQUIRE(book.absent().size() == 1);
  CHECK(book.absent()[0].name == "b");
  REQUIRE(book.next_due());
  const auto again = book.take_due(kNow + 2s);
  CHECK(again.size() == 2);  // by its id, and by its address
}

TEST_CASE("address book: a lost or remembered node is expected for a moment") {
  AddressBook book(node(1));
  book.learn(node(2), "b", kAddress, Hint::kAlive, kNow);
  CHECK(!book.is_one_expected(kNow));  // never seen yet
  book.on_connected(node(2), "b", kAddress, nullptr);
  CHECK(!book.is_one_expected(kNow));
  book.on_lost(node(2), kNow);
  CHECK(book.is_one_expected(kNow));
  CHECK(book.is_one_expected(kNow + 1'999ms));
  CHECK(!book.is_one_expected(kNow + 2s));
  book.on_connected(node(2), "b", kAddress, nullptr);
  CHECK(!book.is_one_expected(kNow + 1s));
  for (const auto when : {3s, 6s, 11s}) {  // repeated losses: not expected for ever
    book.on_lost(node(2), kNow + when);
    CHECK(!book.is_one_expected(kNow + when));
    book.on_connected(node(2), "b", kAddress, nullptr);
  }
  book.on_lost(node(2), kNow + 12s);
  CHECK(book.is_one_expected(kNow + 12s));

  AddressBook later(node(1));
  later.read(book.text(), kNow + 1h);
  CHECK(later.is_one_expected(kNow + 1h));
  CHECK(!later.is_one_expected(kNow + 1h + 2s));
  later.on_connected(node(2), "b", kAddress, nullptr);
  CHECK(!later.is_one_expected(kNow + 1h));
}

TEST_CASE("address book: nodes are called by their names, namesakes by their ids too") {
  AddressBook book(node(1));
  CHECK(book.name_of(node(2)) == node(2).short_text());
  book.learn(node(2), "b", kAddress, Hint::kAlive, kNow);
  CHECK(book.name_of(node(2)) == "b");
  book.learn(node(3), "b", kAddress, Hint::kAlive, kNow);
  CHECK(book.name_of(node(2)) == "b (" + node(2).short_text() + ")");
  CHECK(book.name_of(node(3)) == "b (" + node(3).short_text() + ")");
}

TEST_CASE("address book: this node's own address is called once") {
  AddressBook book(node(1));
  book.want(kAddress, kNow);
  const auto due = book.take_due(kNow);
  REQUIRE(due.size() == 1);
  book.on_own(due[0]);
  book.on_failed(due[0], kNow);
  CHECK(!book.next_due());
  book.learn(node(1), "self", kAddress, Hint::kAlive, kNow);
  CHECK(!book.next_due());
}

TEST_CASE("address book: its text is read back, and other text is ignored") {
  AddressBook book(node(1));
  book.learn(node(2), "b", kAddress, Hint::kAlive, kNow);
  book.learn(node(2), "b", {"fe80::1%eth0", 8601}, Hint::kAlive, kNow);
  AddressBook later(node(1));
  later.read(book.text(), kNow);
  CHECK(later.text() == book.text());
  const auto due = later.take_due(kNow);
  REQUIRE(due.size() == 1);
  CHECK(due[0].address.host == "fe80::1%eth0");
  for (const char* text : {"", "[]", "{}", "{\"nodes\":[1,{},{\"id\":\"12\"}]}", "{\"nodes\":3}"}) {
    AddressBook empty(node(1));
    empty.read(text, kNow);
    CHECK(!empty.next_due());
  }
}

TEST_CASE("address book: it is bounded, and unreachable nodes are evicted first") {
  AddressBook book(node(0));
  const auto nth = [](size_t number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[0] = std::byte{1};
    bytes[1] = static_cast<std::byte>(number >> 8);
    bytes[2] = static_cast<std::byte>(number);
    return NodeId(bytes);
  };
  for (size_t i = 0; i < 2 * AddressBook::kNodesMax; ++i) {
    book.learn(nth(i), "n", {"10.0.0.1", static_cast<uint16_t>(i + 1)}, Hint::kTold, kNow);
  }
  CHECK(book.take_due(kNow).size() == AddressBook::kNodesMax);
  book.learn(nth(9999), "n", kAddress, Hint::kAlive, kNow);  // all are being called: no room
  CHECK(book.take_due(kNow + 5s).empty());
}

TEST_CASE("a copy of a beacon changes no address: anybody may have resent it") {
  AddressBook book(node(1));
  book.learn(node(2), "b", kAddress, Hint::kAlive, kNow);
  for (int i = 0; i < 20; ++i) {
    const NetAddress claimed{"10.6.6." + std::to_string(i + 1), 8601};
    book.learn(node(2), "b", claimed, Hint::kCopy, kNow);
  }
  REQUIRE(book.absent().size() == 1);
  CHECK(book.absent()[0].address == kAddress);
  const auto due = book.take_due(kNow + std::chrono::seconds(60));
  REQUIRE(due.size() == 1);
  CHECK(due[0].address == kAddress);
}
