#include "doctor/mac/thunderbolt.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/machine/tool_text.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr int kItemDepthMax = 8;  // docks in a row
constexpr int kReceptacleMax = 64;
constexpr int64_t kGbitMax = 10'000;
constexpr size_t kNameBytesMax = 128;
constexpr int64_t kRdmaServiceId = 64'087;  // "protocol_id_key" of the service "rdma"

std::string name_at(const Json& object, std::string_view key) {
  const Json* found = find(object, key);
  if (found == nullptr || !found->is_string()) return "";
  return std::string(text_of(found->get_string()).substr(0, kNameBytesMax));
}

const JsonArray& array_at(const Json& object, std::string_view key) {
  static const JsonArray kNone;
  const Json* found = find(object, key);
  return found != nullptr && found->is_array() ? found->get_array() : kNone;
}

bool offers_rdma(const Json& peer) {
  const JsonArray& services = array_at(peer, "services_title");
  return std::any_of(services.begin(), services.end(), [](const Json& service) {
    const Json* id = find(service, "protocol_id_key");
    return (id != nullptr && number_of<int64_t>(*id) == kRdmaServiceId) ||
           name_at(service, "service_key_key") == "rdma";
  });
}

// The Mac among connected devices: this one, or one at the end of a row of docks.
const Json* peer_in(const Json& device, int depth) {
  if (!name_at(device, "domain_uuid_key").empty()) return &device;
  if (depth == kItemDepthMax) return nullptr;
  for (const Json& next : array_at(device, "_items")) {
    if (const Json* peer = peer_in(next, depth + 1)) return peer;
  }
  return nullptr;
}

// "80 Gb/s" of a link, "Up to 120 Gb/s" of a free port, "Up to 20 Gb/s x2".
int64_t gbit_of(std::string_view speed) {
  const auto rest = after_key(speed, "Up to ");
  const auto number = leading_number(rest.value_or(trimmed(speed)));
  return number && *number <= static_cast<uint64_t>(kGbitMax) ? static_cast<int64_t>(*number) : 0;
}

void add_device(const Json& device, ThunderboltPort& port) {
  const Json* peer = peer_in(device, 0);
  port.device = name_at(peer != nullptr ? *peer : device, "_name");
  if (port.device.empty()) port.device = "a device without a name";
  if (peer == nullptr) return;
  port.peer_domain = name_at(*peer, "domain_uuid_key");
  port.peer_offers_rdma = offers_rdma(*peer);
}

ThunderboltPort port_of(const Json& bus, const Json& tag) {
  ThunderboltPort port;
  port.domain = name_at(bus, "domain_uuid_key");
  port.machine = name_at(bus, "device_name_key");
  const auto id = leading_number(name_at(tag, "receptacle_id_key")).value_or(0);
  port.receptacle = id <= kReceptacleMax ? static_cast<int>(id) : 0;
  const std::string speed = name_at(tag, "current_speed_key");
  const bool is_connected = name_at(tag, "receptacle_status_key") == "receptacle_connected";
  (is_connected && !speed.starts_with("Up to") ? port.gbit_s : port.gbit_s_max) = gbit_of(speed);
  const JsonArray& devices = array_at(bus, "_items");
  if (is_connected && !devices.empty()) add_device(devices[0], port);
  return port;
}

void add_bus(const Json& bus, std::vector<ThunderboltPort>& ports) {
  if (!bus.is_object()) return;
  for (const auto& field : bus.get_object()) {
    const std::string_view key(field.key().data(), field.key().size());
    const bool is_port = key.starts_with("receptacle_") && key.ends_with("_tag");
    if (is_port && ports.size() < kThunderboltPortsMax)
      ports.push_back(port_of(bus, field.value()));
  }
}

struct PortPlace {
  size_t machine = 0;
  const ThunderboltPort* port = nullptr;
};

}  // namespace

Result<std::vector<ThunderboltPort>> parse_thunderbolt(std::string_view text) {
  const Json json = TRY(parse_untrusted_json(text));
  const Json* const buses = find(json, "SPThunderboltDataType");
  if (buses == nullptr || !buses->is_array()) {
    return Error{ErrorCode::kCorrupt,
                 "this is not the output of `system_profiler SPThunderboltDataType -json`"};
  }
  std::vector<ThunderboltPort> ports;
  for (const Json& bus : buses->get_array()) add_bus(bus, ports);
  std::stable_sort(ports.begin(), ports.end(),
                   [](const ThunderboltPort& a, const ThunderboltPort& b) {
                     return a.receptacle < b.receptacle;
                   });
  return ports;
}

bool is_port_without_rdma(const ThunderboltPort& port) {
  return port.machine == "Mac Studio" && port.interface == "en2";
}

std::vector<ThunderboltCable> thunderbolt_cables(const std::vector<MacPorts>& machines) {
  const size_t count = std::min(machines.size(), kCabledMachinesMax);
  std::map<std::string, PortPlace> places;
  for (size_t i = 0; i < count; ++i) {
    for (const ThunderboltPort& port : machines[i].ports) {
      if (!port.domain.empty()) places.emplace(port.domain, PortPlace{i, &port});
    }
  }
  std::vector<ThunderboltCable> cables;
  for (const auto& [domain, place] : places) {
    const auto other = places.find(place.port->peer_domain);
    if (other == places.end() || other->second.machine == place.machine) continue;
    const bool is_mutual = other->second.port->peer_domain == domain;
    const bool is_first = place.machine < other->second.machine;
    if (is_mutual && !is_first) continue;  // the other end adds it
    const PortPlace& a = is_first ? place : other->second;
    const PortPlace& b = is_first ? other->second : place;
    cables.push_back({.a = machines[a.machine].name,
                      .b = machines[b.machine].name,
                      .port_a = a.port->receptacle,
                      .port_b = b.port->receptacle,
                      .gbit_s = place.port->gbit_s,
                      .is_seen_by_both = is_mutual});
  }
  return cables;
}

}  // namespace lockstep
