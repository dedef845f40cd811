#!/usr/bin/env bash
# Builds a preset with its tests and runs them; fails when anything fails.
#   tools/test.sh [release|dev|asan|tsan] [quick]
# quick: only the suites of asan and tsan that find most for their time, about five minutes with the build on two cores.
# The log of ctest stays in build/PRESET/ctest.log.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:-release}"
quick="${2:-}"
started=$SECONDS
log="build/$preset/ctest.log"
rm -f "$log"

suites=""
case "$preset $quick" in
  "asan quick") suites="access base chat grammar json net router tokenizer transport" ;; # what meets strangers' bytes
  "tsan quick") suites="access base collective hub net transport" ;;
  "tsan ") # suites with threads or processes; the others would only be slow
    suites="access base cluster collective device engine hub net node router server transport"
    ;;
  *" quick")
    echo "test: only asan and tsan have a quick selection" >&2
    exit 2
    ;;
esac
selection=()
[ -z "$suites" ] || selection=(-R "^(${suites// /|})/")
targets=()
[ -z "$quick" ] || for suite in $suites; do targets+=("${suite}_test"); done
tools/build.sh "$preset" ${targets[@]+"${targets[@]}"}
built=$SECONDS

case "$preset" in
  tsan) export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1 second_deadlock_stack=1}" ;;
  asan)
    export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1 strict_string_checks=1 disable_coredump=0}"
    export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
    export LSAN_OPTIONS="${LSAN_OPTIONS:-suppressions=$PWD/tests/leaks_of_others.txt print_suppressions=0}"
    ;;
esac

# Next to a test with processes, of which one runs at a time and which mostly waits, two may compute.
parallel=3
[ "$preset" = release ] || parallel=2
status=0
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$parallel" \
  ${selection[@]+"${selection[@]}"} 2>&1 </dev/null | tee "$log" || status=$?
echo "Took $((SECONDS - started)) s: build $((built - started)) s, tests $((SECONDS - built)) s"
exit "$status"
