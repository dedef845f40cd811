// The command line: `lockstep COMMAND ...`. Parses, runs one command and returns the exit status:
// 0, 1 after a failure, 2 for an unusable flag, model or file, each with one sentence on stderr.
#pragma once

namespace lockstep {

int run_command_line(int argc, char** argv);

}  // namespace lockstep
