#!/usr/bin/env bash
# clang-tidy over everything in compile_commands.json of the preset dev, one process a core. It takes minutes, so it is
# not part of `make test`. FILES="src/base/log.cc" looks at those files only (FILES="": at none), LINE_FILTER at those lines
# (clang-tidy --line-filter).
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
tools/install_packages.sh base clang
cmake --preset dev -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DLOCKSTEP_HEADER_CHECK=ON \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -B build/clang-tidy >/dev/null
# The kernels of GPUs are headers that the build makes, where it can.
if grep -q lockstep_spirv build/clang-tidy/build.ninja; then
  cmake --build build/clang-tidy --target lockstep_spirv -- --quiet
fi
files="${FILES-$(git ls-files -co --exclude-standard 'src/*.cc' 'bench/*.cc')}"
printf '%s\n' $files | xargs -r -P "$(getconf _NPROCESSORS_ONLN)" -n 1 clang-tidy --quiet --line-filter="${LINE_FILTER:-}" -p build/clang-tidy \
  2> >(grep -v 'warnings generated' >&2)
echo "clang-tidy has nothing to say. Took $((SECONDS - started)) s."
