#!/bin/sh
# 200 rounds of loading and unloading a model, with workers killed in between, from a build folder's node_test:
#   bench/load_unload.sh [build/dev]
# Fails if descriptors, threads, children or memory of the node have grown, or if a worker or a shared-memory segment is
# left.
set -eu
build=${1:-build/dev}

count_workers() { ps -e -o args= | grep -c '[n]ode_test_worker' || true; }
count_segments() { find /dev/shm -mindepth 1 2>/dev/null | wc -l; }

workers=$(count_workers)
segments=$(count_segments)
"$build/node_test" --no-skip --test-case='200 *' | grep -v '^$'
echo "workers: $workers before, $(count_workers) after"
echo "named shared-memory segments: $segments before, $(count_segments) after"
[ "$(count_workers)" -le "$workers" ] && [ "$(count_segments)" -le "$segments" ]
