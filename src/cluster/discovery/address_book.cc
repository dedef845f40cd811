#include "cluster/discovery/address_book.h"

#include <algorithm>

#include "cluster/identity.h"
#include "json/json.h"

namespace lockstep {

void AddressBook::want(const NetAddress& address, Clock::time_point now) {
  const bool is_known = std::any_of(wanted_.begin(), wanted_.end(),
                                    [&](const Wanted& one) { return one.address == address; });
  if (is_known || wanted_.size() >= kWantedMax) return;
  wanted_.push_back({.address = address, .node = {}, .timing = {.next_call = now}});
}

void AddressBook::learn(const NodeId& node, const std::string& name, const NetAddress& address,
                        Hint hint, Clock::time_point now) {
  if (node == own_) return;
  auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    if (!make_room()) return;
    found = nodes_.emplace(node, Node{}).first;
    found->second.timing.next_call = first_call(node, now);
  }
  Node& known = found->second;
  if (!name.empty()) known.name = name;
  auto& addresses = known.addresses;
  const bool is_new = std::find(addresses.begin(), addresses.end(), address) == addresses.end();
  if (is_new && hint == Hint::kCopy && !addresses.empty()) {
    if (addresses.size() < kAddressesMax) addresses.push_back(address);
  } else if (is_new) {
    addresses.insert(addresses.begin(), address);
    if (addresses.size() > kAddressesMax) addresses.pop_back();
    known.address_index = 0;
    if (is_idle(known))
      known.timing.next_call = std::min(known.timing.next_call, first_call(node, now));
  } else if (hint != Hint::kTold && is_idle(known)) {
    // It is alive, so a long wait is wrong; but a call that has just failed is not repeated for
    // every beacon.
    known.timing.next_call = std::min(known.timing.next_call, now + kSecondCaller);
  }
}

// Makes room for a newcomer by evicting the idle node with the most failed calls.
bool AddressBook::make_room() {
  if (nodes_.size() < kNodesMax) return true;
  auto worst = nodes_.end();
  for (auto it = nodes_.begin(); it != nodes_.end(); ++it) {
    if (!is_idle(it->second)) continue;
    if (worst == nodes_.end() || it->second.timing.failures > worst->second.timing.failures) {
      worst = it;
    }
  }
  if (worst == nodes_.end()) return false;
  nodes_.erase(worst);
  return true;
}

AddressBook::Clock::time_point AddressBook::first_call(const NodeId& node,
                                                       Clock::time_point now) const {
  return own_ < node ? now : now + kSecondCaller;
}

bool AddressBook::is_idle(const Wanted& wanted) const {
  if (wanted.is_own || wanted.timing.is_under_way) return false;
  if (!wanted.node) return true;
  const auto node = nodes_.find(*wanted.node);
  return node == nodes_.end() || !node->second.is_connected;
}

std::vector<AddressBook::Target> AddressBook::take_due(Clock::time_point now) {
  std::vector<Target> due;
  for (auto& [id, node] : nodes_) {
    if (!is_idle(node) || node.addresses.empty() || node.timing.next_call > now) continue;
    node.timing.is_under_way = true;
    due.push_back({id, node.addresses[node.address_index % node.addresses.size()]});
    ++node.address_index;
  }
  for (Wanted& wanted : wanted_) {
    if (!is_idle(wanted) || wanted.timing.next_call > now) continue;
    wanted.timing.is_under_way = true;
    due.push_back({std::nullopt, wanted.address});
  }
  return due;
}

std::optional<AddressBook::Clock::time_point> AddressBook::next_due() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&](const Timing& timing) {
    if (!next || timing.next_call < *next) next = timing.next_call;
  };
  for (const auto& [id, node] : nodes_) {
    if (is_idle(node) && !node.addresses.empty()) consider(node.timing);
  }
  for (const Wanted& wanted : wanted_) {
    if (is_idle(wanted)) consider(wanted.timing);
  }
  return next;
}

AddressBook::Timing* AddressBook::timing_of(const Target& target) {
  if (target.node) {
    const auto found = nodes_.find(*target.node);
    return found == nodes_.end() ? nullptr : &found->second.timing;
  }
  for (Wanted& wanted : wanted_) {
    if (wanted.address == target.address) return &wanted.timing;
  }
  return nullptr;
}

void AddressBook::postpone(Timing& timing, Clock::time_point now) {
  const auto wait = kRetryFirst * (1 << std::min(timing.failures, 10));
  timing.next_call = now + std::min<std::chrono::milliseconds>(wait, kRetryMax);
  ++timing.failures;
}

void AddressBook::on_failed(const Target& target, Clock::time_point now) {
  Timing* const timing = timing_of(target);
  if (timing == nullptr) return;
  timing->is_under_way = false;
  postpone(*timing, now);
}

void AddressBook::on_own(const Target& target) {
  for (Wanted& wanted : wanted_) {
    if (!target.node && wanted.address == target.address) wanted.is_own = true;
  }
}

void AddressBook::on_connected(const NodeId& node, const std::string& name,
                               const NetAddress& address, const Target* target) {
  if (nodes_.contains(node) || make_room()) {
    Node& known = nodes_[node];
    known.name = name;
    known.is_connected = true;
    known.timing = {};
    auto& addresses = known.addresses;
    std::erase(addresses, address);
    addresses.insert(addresses.begin(), address);
    if (addresses.size() > kAddressesMax) addresses.pop_back();
    known.address_index = 0;
  }
  for (Wanted& wanted : wanted_) {
    if (target == nullptr || target->node || wanted.address != target->address) continue;
    wanted.node = node;
    wanted.timing = {};
  }
}

void AddressBook::on_lost(const NodeId& node, Clock::time_point now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second.is_connected = false;
  expect(found->second, now);
  found->second.timing = {.next_call = first_call(node, now + std::chrono::milliseconds(200))};
  for (Wanted& wanted : wanted_) {
    if (wanted.node == node) wanted.timing.next_call = now + kSecondCaller;
  }
}

void AddressBook::expect(Node& node, Clock::time_point now) {
  const bool is_first = node.expected_until == Clock::time_point{};
  if (is_first || now - node.expected_until >= kReturnsApart)
    node.expected_until = now + kReturnMax;
}

bool AddressBook::is_one_expected(Clock::time_point now) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return !entry.second.is_connected && now < entry.second.expected_until;
  });
}

std::vector<AddressBook::Absent> AddressBook::absent() const {
  std::vector<Absent> all;
  for (const auto& [id, node] : nodes_) {
    if (!node.is_connected && !node.addresses.empty()) {
      all.push_back({id, node.name, node.addresses.front()});
    }
  }
  return all;
}

std::string AddressBook::name_of(const NodeId& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return node_name_text(node, "", false);
  const auto is_namesake = [&](const auto& item) {
    return item.first != node && item.second.name == found->second.name;
  };
  return node_name_text(node, found->second.name,
                        std::any_of(nodes_.begin(), nodes_.end(), is_namesake));
}

std::string AddressBook::text() const {
  JsonArray nodes;
  for (const auto& [id, node] : nodes_) {
    JsonArray addresses;
    for (const NetAddress& address : node.addresses) addresses.emplace_back(address.text());
    nodes.push_back(
        JsonObject{{"id", id.text()}, {"name", node.name}, {"addresses", std::move(addresses)}});
  }
  return dump_json(JsonObject{{"nodes", std::move(nodes)}}) + "\n";
}

void AddressBook::read(std::string_view text, Clock::time_point now) {
  const auto whole = parse_json(text);
  const Json* const nodes = whole.ok() ? find(whole.value(), "nodes") : nullptr;
  if (nodes == nullptr || !nodes->is_array()) return;
  for (const Json& node : nodes->get_array()) {
    const auto id_text = get_string(node, "id");
    const auto name = get_string(node, "name");
    const Json* const addresses = find(node, "addresses");
    if (!id_text.ok() || !id_text.value() || !name.ok() || addresses == nullptr ||
        !addresses->is_array()) {
      continue;
    }
    const auto id = NodeId::parse(*id_text.value());
    const std::string name_text = name.value().value_or("");
    if (!id || !is_node_name(name_text)) continue;
    const auto& list = addresses->get_array();
    for (size_t i = list.size(); i-- > 0;) {  // restores the order: latest first
      if (!list[i].is_string()) continue;
      const auto address = parse_net_address(std::string_view(list[i].get_string()), 1);
      if (address.ok()) learn(*id, name_text, address.value(), Hint::kTold, now);
    }
    if (const auto known = nodes_.find(*id); known != nodes_.end()) expect(known->second, now);
  }
}

}  // namespace lockstep
