// A network namespace of this process and its children, which can be taken down. For tests of lost
// links.
#pragma once

#include <string>

namespace lockstep {

class PrivateNetwork {
 public:
  // Moves this process into its own network namespace; call before starting threads. False if the
  // machine does not permit it or has no `ip`.
  bool enter();
  // For the emulated machine of tools/rdma-vm: its two joined RDMA ports.
  void use_guest_ports();
  bool is_entered() const { return is_entered_; }
  bool is_guest() const { return is_guest_; }
  static constexpr const char* kGuestHosts[] = {"10.77.0.1", "10.77.0.2"};

  // Each is true once it is done. Frames in flight are lost, connections get no notice.
  bool take_link_down();
  bool bring_link_up();
  bool swallow_packets();
  bool deliver_packets();

 private:
  bool is_entered_ = false;
  bool is_guest_ = false;
};

}  // namespace lockstep
