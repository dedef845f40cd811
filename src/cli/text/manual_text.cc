#include "cli/text/manual_text.h"

#include <fmt/core.h>

#include <string_view>

namespace lockstep {
namespace {

constexpr std::string_view kBeginning = R"(.TH LOCKSTEP 1
.SH NAME
lockstep \- turn the machines you own into one LLM server
.SH SYNOPSIS
.B lockstep
.I COMMAND
[\fIargument\fR ...]
.SH DESCRIPTION
.B lockstep serve
runs this machine's node, with an HTTP API in the form of OpenAI's.
.B lockstep run
answers one prompt.
.B lockstep router
spreads requests over independent nodes.
.B lockstep doctor
says what is wrong with a machine, and
.B lockstep bug\-report
writes an archive without secrets for a report; with
.B \-\-first\-mac
it also tries the kernels, RDMA, links and a small benchmark,
and hides names and addresses of machines.
.B lockstep \-\-help
lists all commands, and
.B lockstep \fICOMMAND\fB \-\-help
the flags of one, with examples.
)";

constexpr std::string_view kEnd = R"(.SH FILES
.TP
.I /etc/default/lockstep
arguments of the services lockstep.service and lockstep\-router.service
.TP
.I /etc/credstore/lockstep.token\fR, \fP/etc/credstore/lockstep.api\-key
secrets of these services (a token for joining, the router's key), which must not be in
.I /etc/default/lockstep
.TP
.I /var/lib/lockstep
keys and models of the service
.TP
.I ~/.lockstep
keys of a node that a user starts
.TP
.I /usr/share/lockstep/models/stories260K
a small model to try:
.B lockstep run /usr/share/lockstep/models/stories260K
.TP
.I /usr/share/doc/lockstep
all documentation
.SH ENVIRONMENT
.TP
.B LOCKSTEP_HOME
another folder for keys and the control secret;
commands that change a node need the node's own folder
.TP
.BR HF_HOME ", " LOCKSTEP_MODELS
where models are stored
.TP
.BR LOCKSTEP_TOKEN_FILE ", " LOCKSTEP_API_KEY_FILE
files with a token for joining and with the router's key
.TP
.B LOCKSTEP_CORE_DUMPS
1: serve and router allow core dumps and debuggers
.SH EXIT STATUS
0 on success, 2 for a wrong flag, model or file, 1 for any other failure.
)";

// Hyphens that can be copied, and no line that a macro could begin.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '-') {
      escaped += "\\-";
    } else if (c == '\\') {
      escaped += "\\e";
    } else {
      escaped += c;
    }
  }
  const bool is_macro = escaped.starts_with('.') || escaped.starts_with('\'');
  return is_macro ? "\\&" + escaped : escaped;
}

std::string flag_line(const FlagText& flag) {
  std::string names;
  for (const std::string& name : flag.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  if (!flag.value.empty()) {
    names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(flag.value));
  }
  return fmt::format(".TP\n{}\n{}\n", names, roff(flag.about));
}

void add_command(const CommandText& command, const std::string& path, std::string& text) {
  const std::string name = path + " " + command.name;
  std::string line = fmt::format("\\fB{}\\fR", roff(name));
  for (const FlagText& argument : command.arguments) {
    line += fmt::format(" \\fI{}\\fR", roff(argument.value));
  }
  text += fmt::format(".SS {}\n{}.\n", line, roff(command.about));
  for (const FlagText& argument : command.arguments) text += flag_line(argument);
  for (const FlagText& flag : command.flags) text += flag_line(flag);
  for (const CommandText& one : command.commands) add_command(one, name, text);
}

}  // namespace

std::string manual_page(const CommandText& program) {
  std::string text(kBeginning);
  text += ".SH COMMANDS\n";
  for (const CommandText& command : program.commands) add_command(command, program.name, text);
  return text + std::string(kEnd);
}

}  // namespace lockstep
