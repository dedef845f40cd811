// A network of this process and its children alone, whose loopback can be taken away. For tests of
// lost links.
#pragma once

#include <string>

namespace lockstep {

class PrivateNetwork {
 public:
  // Moves this process into a network of its own; before it has threads. False where the machine
  // does not permit it or has no `ip`.
  bool enter();
  bool is_entered() const { return is_entered_; }

  // Each is true once it is done. Frames under way are lost, connections are not told.
  bool take_link_down() { return ip("link set lo down"); }
  bool bring_link_up() { return ip("link set lo up"); }
  bool swallow_packets() { return ip("route replace blackhole 127.0.0.1/32 table local"); }
  bool deliver_packets() {
    return ip("route del blackhole 127.0.0.1/32 table local") &&
           ip("route replace local 127.0.0.1 dev lo table local proto kernel scope host "
              "src 127.0.0.1");
  }

 private:
  static bool ip(const std::string& arguments);
  bool is_entered_ = false;
};

}  // namespace lockstep
