#!/usr/bin/env bash
# Breaks one of four emulated machines at a random token of four streams, TRIALS (100) times from SEED (1); each trial has
# its own cluster. About 15 s each. CASE=all: for a model of each kind of state (tests/cluster/text_checkpoint.py).
# Needs root and network namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh release lockstep
TRIALS="${TRIALS:-100}" exec python3 -B tests/cluster/cluster_trials.py
