#!/bin/sh
# The table of `lockstep bench collective` from 8 B to 1 MiB, one JSON line each: best p50 of 5 runs.
#   bench/collective_bench.sh [path of lockstep] [ranks]
set -eu
lockstep=${1:-build/release/lockstep}
ranks=${2:-2}
for link in shm tcp; do
  for bytes in 8 64 1024 4096 16384 65536 262144 1048576; do
    for run in 1 2 3 4 5; do
      "$lockstep" bench collective --ranks "$ranks" --link "$link" --bytes "$bytes" --json
    done | sed 's/.*"p50_us": *\([0-9.]*\).*/\1/' | sort -n | head -n 1 |
      sed "s/.*/{\"link\": \"$link\", \"ranks\": $ranks, \"bytes\": $bytes, \"p50_us\": &}/"
  done
done
