#!/usr/bin/env bash
# Runs every cell of the fault matrix FAULT_ROUNDS (100) times and prints the table: FAULT_JOBS (8) groups at a time, each
# in its own network, since most rounds wait; about 40 minutes on two cores. With arguments it runs only that part, as in:
# tools/fault_matrix.sh --link tcp --fault SIGSTOP
# tools/fault_matrix.sh --guest [...]: the cells over RDMA, FAULT_ROUNDS (20) times over soft-RoCE devices in an emulated
# machine (tools/rdma-vm --help); an hour or more.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${FAULT_PROGRAM:-build/release/fault_matrix}
[ -n "${FAULT_PROGRAM:-}" ] || tools/build.sh release fault_matrix
if [ "${1:-}" = --guest ]; then
  shift
  exec tools/rdma-vm --timeout "${FAULT_TIMEOUT:-14400}" -- \
    "$program" --rdma guest --link verbs --rounds "${FAULT_ROUNDS:-20}" "$@"
fi
rounds=${FAULT_ROUNDS:-100}
[ $# -eq 0 ] || exec "$program" --rounds "$rounds" "$@"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The longest parts come first.
order=(slow SIGSTOP blackhole "link down" "kill -9" "corrupt frame" "old-epoch frame" version)
for fault in "${order[@]}"; do
  for link in verbs tcp shm; do
    printf '%s\0%s\0' "$link" "$fault"
  done
done | xargs -0 -n 2 -P "${FAULT_JOBS:-8}" bash -c '
  if "$0" --rounds "$1" --seed "${FAULT_SEED:-1}" --link "$3" --fault "$4" >"$2/$3 $4" 2>"$2/$3 $4.log"; then end=done; else end="with findings, or no cell"; fi
  echo "$(date +%T) $3 $4: $end" >&2' "$program" "$rounds" "$folder" || true

head -n 1 "$folder/tcp kill -9"
cells=0 findings=0
for link in shm tcp verbs; do
  for fault in "kill -9" SIGSTOP "link down" blackhole slow "corrupt frame" "old-epoch frame" version; do
    part="$folder/$link $fault"
    sed '1d;$d' "$part"
    # A part without its last line has not finished.
    if [[ "$(tail -n 1 "$part")" =~ ^([0-9]+)\ cells,\ ([0-9]+)\ findings$ ]]; then
      cells=$((cells + BASH_REMATCH[1])) findings=$((findings + BASH_REMATCH[2]))
    else
      tail -n 5 "$part" "$part.log"
      findings=$((findings + 1))
    fi
  done
done
echo "$cells cells, $findings findings"
[ "$findings" -eq 0 ]
