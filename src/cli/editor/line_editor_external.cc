#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/files/private_file.h"
#include "cli/editor/line_editor.h"
#include "cli/flags/interrupt.h"

extern char** environ;

namespace lockstep {
namespace {

std::string editor_program() {
  for (const char* name : {"VISUAL", "EDITOR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "vi";
}

// The variable may have arguments, so a shell reads it, as git does.
Status run_editor(const std::string& path) {
  const std::string editor = editor_program();
  std::string command = editor + " \"$@\"";
  std::string shell = "sh", flag = "-c", name = editor, file = path;
  char* const words[] = {shell.data(), flag.data(), command.data(),
                         name.data(),  file.data(), nullptr};
  const InterruptGuard guard;  // Ctrl-C is the editor's
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "sh", nullptr, nullptr, words, environ);
  if (failed != 0) {
    return Error{ErrorCode::kInternal,
                 fmt::format("the editor {} cannot be started: {}", editor, std::strerror(failed))};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{ErrorCode::kInternal, "the editor was lost"};
  }
  InterruptGuard::forget();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok{};
  return Error{
      ErrorCode::kCancelled,
      fmt::format("the editor {} failed, so the text stays as it was; $EDITOR names it", editor)};
}

}  // namespace

Result<std::string> edit_in_editor(std::string_view text) {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "lockstep-XXXXXX").string();
  const int fd = ::mkstemp(path.data());  // for its owner only
  if (fd < 0) {
    return Error{ErrorCode::kInternal, fmt::format("the file {} for the editor cannot be made: {}",
                                                   path, std::strerror(errno))};
  }
  ::close(fd);
  const auto edit = [&]() -> Result<std::string> {
    TRY(replace_private_file(path, std::string(text) + "\n"));
    TRY(run_editor(path));
    return read_private_file(path);
  };
  auto edited = edit();
  std::filesystem::remove(path, error);
  while (edited.ok() && edited.value().ends_with('\n')) edited.value().pop_back();
  return edited;
}

}  // namespace lockstep
