#!/usr/bin/env bash
# Runs every cell of the fault matrix FAULT_ROUNDS (100) times and prints the table; about two hours.
# Arguments go to the program, as in: tools/fault_matrix.sh --link tcp --fault SIGSTOP
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh release fault_matrix
exec build/release/fault_matrix --rounds "${FAULT_ROUNDS:-100}" "$@"
