#include "node/private_network.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace lockstep {
namespace {

bool run(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

}  // namespace

bool PrivateNetwork::enter() {
#ifdef __linux__
  const auto user = ::getuid();
  const auto group = ::getgid();
  if (::unshare(CLONE_NEWNET) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  }
  is_entered_ = bring_link_up();
#endif
  return is_entered_;
}

void PrivateNetwork::use_guest_ports() {
  is_entered_ = is_guest_ = true;
}

bool PrivateNetwork::take_link_down() {
  return run(is_guest_ ? "ip link set rdma0 down" : "ip link set lo down");
}

bool PrivateNetwork::bring_link_up() {
  if (!is_guest_) return run("ip link set lo up");
  return run("ip link set rdma0 up") &&  // its route was removed with it
         run("ip route replace 10.77.0.2 dev rdma0 src 10.77.0.1 table 101");
}

bool PrivateNetwork::swallow_packets() {
  if (!is_guest_) return run("ip route replace blackhole 127.0.0.1/32 table local");
  return run("tc qdisc replace dev rdma0 root netem loss 100%") &&
         run("tc qdisc replace dev rdma1 root netem loss 100%");
}

bool PrivateNetwork::deliver_packets() {
  if (is_guest_) {
    return run("tc qdisc del dev rdma0 root") && run("tc qdisc del dev rdma1 root");
  }
  return run("ip route del blackhole 127.0.0.1/32 table local") &&
         run("ip route replace local 127.0.0.1 dev lo table local proto kernel scope host "
             "src 127.0.0.1");
}

}  // namespace lockstep
