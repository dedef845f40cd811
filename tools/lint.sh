#!/usr/bin/env bash
# What clang and clang-tidy can check without running anything: clang-tidy on the lines changed since LINT_BASE (default: the
# previous commit), in at most LINT_FILES_MAX (24) sources, and every header of src/ compiled alone.
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
# [{"name": FILE, "lines": [[FIRST, LAST], ...]}, ...] from the heads of the hunks, "@@ -1,2 +3,4 @@".
LINE_FILTER="$(for file in ${changed[@]+"${changed[@]}"}; do
  git diff -U0 "$base" -- "$file" | sed -nE 's/^@@ -[0-9,]+ \+([0-9]+)(,([0-9]+))? @@.*/\1 \3/p' |
    while read -r first count; do
      [ "${count:-1}" = 0 ] || echo "{\"name\":\"$file\",\"lines\":[[$first,$((first + ${count:-1} - 1))]]}"
    done
done | paste -sd, | sed 's/.*/[&]/')"
export LINE_FILTER
FILES="${changed[*]}" tools/clang_tidy.sh
cmake --build build/clang-tidy --target header_check -- --quiet
echo "Every header compiles alone."
