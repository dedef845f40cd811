#!/usr/bin/env bash
# Builds a preset with its tests and runs them; fails when anything fails.
#   tools/test.sh [release|dev|asan|tsan]
# The log of ctest stays in build/PRESET/ctest.log.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:-release}"
started=$SECONDS
log="build/$preset/ctest.log"
rm -f "$log"
tools/build.sh "$preset"
built=$SECONDS

selection=()
case "$preset" in
  tsan) # only suites with threads or processes; the others would only be slow
    selection=(-R '^(base|access|transport|collective|device|engine|node|net|server|router|cluster|hub)$')
    export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1 second_deadlock_stack=1}"
    ;;
  asan)
    export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1 strict_string_checks=1}"
    export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
    ;;
esac

status=0
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel 2 \
  ${selection[@]+"${selection[@]}"} 2>&1 </dev/null | tee "$log" || status=$?
echo "Took $((SECONDS - started)) s: build $((built - started)) s, tests $((SECONDS - built)) s"
exit "$status"
