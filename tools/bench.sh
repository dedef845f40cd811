#!/usr/bin/env bash
# Builds and runs the benchmarks of bench/. BENCH=NAME runs one; arguments go to the programs.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
targets=()
for source in bench/*_bench.cc; do
  [ -e "$source" ] || continue
  target="$(basename "$source" .cc)"
  [ -z "${BENCH:-}" ] || [ "$BENCH" = "$target" ] || continue
  targets+=("$target")
done
[ "${#targets[@]}" -gt 0 ] || {
  echo "bench: no benchmark named \"${BENCH:-}\" in bench/" >&2
  exit 2
}
tools/build.sh release "${targets[@]}"
for target in "${targets[@]}"; do
  echo
  echo "$target"
  "build/release/$target" "$@"
done
echo "Took $((SECONDS - started)) s"
