#!/usr/bin/env bash
# Builds the kernels and their tests for AArch64 and runs them under qemu: NEON and the scalar code must give the
# checksums that x86-64 gives (src/kernels/answers/fixed_answers.cc). Needs g++-aarch64-linux-gnu and qemu-user. KERNELS_CXX_AARCH64: another
# compiler, with its flags, for the files of one instruction set, which use no C++ library (tools/test_macos.sh).
# usage: tools/test_aarch64.sh [BUILD_FOLDER]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/aarch64}
compiler=${CXX_AARCH64:-aarch64-linux-gnu-g++}
kernels_compiler=${KERNELS_CXX_AARCH64:-$compiler}
emulator=${QEMU_AARCH64:-qemu-aarch64}

for program in "$compiler" "$emulator"; do
  if ! command -v "$program" >/dev/null; then
    echo "test_aarch64: $program is missing; install g++-aarch64-linux-gnu and qemu-user" >&2
    exit 2
  fi
done

# Only the headers of fmt and doctest: their folder also holds this machine's C headers.
mkdir -p "$build/include" "$build/objects"
for headers in fmt doctest; do
  rm -f "$build/include/$headers"
  ln -s "/usr/include/$headers" "$build/include/$headers"
done

flags="-std=c++20 -O2 -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off
  -DFMT_HEADER_ONLY -I$root/src -I$root/tests -isystem $build/include"
sources=("$root"/src/kernels/*.cc "$root"/src/kernels/answers/*.cc "$root/src/base/check.cc"
  "$root/src/base/threads/thread_team.cc" "$root/src/base/threads/wait.cc" "$root/src/base/machine/machine.cc"
  "$root/src/base/machine/mac_system.cc" "$root"/tests/kernels/*_test.cc "$root/tests/base/thread_team_test.cc"
  "$root/tests/doctest_main.cc")

object_of() { echo "$build/objects/$(echo "${1#"$root"/}" | tr / _).o"; }

# A file is compiled again when anything in the two folders of the kernels is newer than its object.
# shellcheck disable=SC2317 # called by xargs
compile() { # compile SOURCE
  local source="$1" object newer chosen="$compiler" extra=()
  object=$(object_of "$source")
  if [ -f "$object" ]; then
    newer=$(find "$root/src/kernels" "$root/src/base" "$root/src/tensor" "$root/tests/kernels" \
      "$source" "$root/tools/test_aarch64.sh" -newer "$object" -type f | head -n 1)
    [ -z "$newer" ] && return 0
  fi
  echo "  ${source#"$root"/}"
  case $source in
    "$root"/src/kernels/isa_*.cc) chosen=$kernels_compiler ;;
  esac
  case $source in
    */isa_neon_dotprod.cc) extra=(-march=armv8.2-a+dotprod) ;;  # as in src/CMakeLists.txt
    */isa_neon_i8mm.cc) extra=(-march=armv8.2-a+dotprod+i8mm) ;;
  esac
  # shellcheck disable=SC2086
  $chosen $flags "${extra[@]}" -c "$source" -o "$object"
}

echo "test_aarch64: compiling with $($compiler --version | head -n 1)"
export -f object_of compile
export root build compiler kernels_compiler flags
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -euc 'compile "$1"' compile
objects=()
for source in "${sources[@]}"; do objects+=("$(object_of "$source")"); done
"$compiler" -static -pthread "${objects[@]}" -o "$build/kernels_test"

# Products take half of the time.
echo "test_aarch64: running under $($emulator --version | head -n 1)"
status=0
"$emulator" "$build/kernels_test" --source-file='*matmul*' >"$build/products.log" 2>&1 &
products=$!
"$emulator" "$build/kernels_test" --source-file-exclude='*matmul*' || status=$?
wait "$products" || status=$?
cat "$build/products.log"
exit "$status"
