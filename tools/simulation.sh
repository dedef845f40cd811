#!/usr/bin/env bash
# Runs the simulated cluster: SIMULATION_SEEDS (10000) seeds of 10 minutes, then 20 of 24 hours. Arguments go to
# the program instead, as in: tools/simulation.sh --seeds 17 --print
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh release cluster_simulation
program=build/release/cluster_simulation
[ $# -eq 0 ] || exec "$program" "$@"
"$program" --seeds "1..${SIMULATION_SEEDS:-10000}" --minutes 10
exec "$program" --seeds 1..20 --minutes 1440
