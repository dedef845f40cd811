#!/usr/bin/env bash
# What a compiler and clang-tidy can check without running anything: clang-tidy on the sources changed since LINT_BASE
# (default: the previous commit), at most LINT_FILES_MAX (24) of them, and every header of src/ compiled alone.
set -euo pipefail
cd "$(dirname "$0")/.."

base="${LINT_BASE:-HEAD~1}"
files_max="${LINT_FILES_MAX:-24}"
git rev-parse --verify --quiet "$base^{commit}" >/dev/null || base="$(git hash-object -t tree /dev/null)" # a shallow clone
mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' 'bench/*.cc')
# Of more, those whose hash with the commit is smallest: each commit picks others.
if [ "${#changed[@]}" -gt "$files_max" ]; then
  echo "lint: ${#changed[@]} sources changed, $files_max of them are checked; \`make tidy\` checks all"
  commit="$(git rev-parse HEAD)"
  mapfile -t changed < <(for file in "${changed[@]}"; do
    echo "$(printf '%s %s' "$commit" "$file" | sha256sum | cut -c1-16) $file"
  done | sort | head -n "$files_max" | cut -d' ' -f2)
fi
FILES="${changed[*]}" tools/clang_tidy.sh
cmake --build build/clang-tidy --target header_check -- --quiet
echo "Every header compiles alone."
