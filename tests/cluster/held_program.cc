// The program itself, with workers that connect to each other only when the test allows it: while a
// file named "hold" lies next to the program, a worker's connections to other ranks are refused, as
// if those did not listen yet. So all ranks of a group keep their ports open until the file is
// removed, or until group formation times out.
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

#include "cli/command_line.h"

namespace {

bool is_worker = false;

bool is_held() {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  return !none && std::filesystem::exists(program.parent_path() / "hold", none);
}

}  // namespace

// Takes precedence over the C library's.
extern "C" int connect(int fd, const sockaddr* address, socklen_t length) {
  if (is_worker && address->sa_family != AF_UNIX && is_held()) {
    errno = ECONNREFUSED;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_connect, fd, address, length));
}

int main(int argc, char** argv) {
  is_worker = argc > 1 && std::string_view(argv[1]) == "worker";
  return lockstep::run_command_line(argc, argv);
}
