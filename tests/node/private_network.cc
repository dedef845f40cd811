#include "node/private_network.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace lockstep {

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

bool PrivateNetwork::ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0;
}

}  // namespace lockstep
