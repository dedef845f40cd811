#!/usr/bin/env bash
# Builds the fuzz targets and runs each for FUZZ_SECONDS (60). New inputs are kept in build/fuzz/corpus,
# seeds come from fuzz/corpus. FUZZ_TARGET runs one of them.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${FUZZ_SECONDS:-60}"
started=$SECONDS
tools/build.sh fuzz
count=0
for source in fuzz/*_fuzz.cc; do
  target="$(basename "$source" .cc)"
  [ -z "${FUZZ_TARGET:-}" ] || [ "$FUZZ_TARGET" = "$target" ] || continue
  mkdir -p "build/fuzz/corpus/$target"
  seeds="fuzz/corpus/${target%_fuzz}"
  [ -d "$seeds" ] || seeds=""
  echo "$target: $seconds s"
  "build/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus/$target" $seeds </dev/null
  count=$((count + 1))
done
[ "$count" -gt 0 ] || {
  echo "fuzz: no target named \"${FUZZ_TARGET:-}\" in fuzz/" >&2
  exit 2
}
echo "$count targets without a finding. Took $((SECONDS - started)) s."
