#!/usr/bin/env bash
# What clang and clang-tidy can check without running anything: clang-tidy on the lines changed since LINT_BASE (default: the
# previous commit), and every header of src/ compiled alone. A change of more than LINT_FILES_MAX (24) sources takes too long
# here, and so does a clone without its history: `make tidy`.
set -euo pipefail
cd "$(dirname "$0")/.."

base="${LINT_BASE:-HEAD~1}"
files_max="${LINT_FILES_MAX:-24}"
changed=()
if git rev-parse --verify --quiet "$base^{commit}" >/dev/null; then
  mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' 'bench/*.cc')
else
  echo "lint: there is no commit $base to compare with, so clang-tidy checks nothing here; \`make tidy\` checks all"
fi
if [ "${#changed[@]}" -gt "$files_max" ]; then
  echo "lint: ${#changed[@]} sources changed, which are too many for here; \`make tidy\` checks all"
  changed=()
fi
# [{"name": FILE, "lines": [[FIRST, LAST], ...]}, ...] from the heads of the hunks, "@@ -1,2 +3,4 @@".
LINE_FILTER="$(for file in ${changed[@]+"${changed[@]}"}; do
  git diff -U0 "$base" -- "$file" | sed -nE 's/^@@ -[0-9,]+ \+([0-9]+)(,([0-9]+))? @@.*/\1 \3/p' |
    while read -r first count; do
      [ "${count:-1}" = 0 ] || echo "{\"name\":\"$file\",\"lines\":[[$first,$((first + ${count:-1} - 1))]]}"
    done
done | paste -sd, | sed 's/.*/[&]/')"
[ -n "$LINE_FILTER" ] || changed=() # lines were only removed
export LINE_FILTER
FILES="${changed[*]-}" tools/clang_tidy.sh
cmake --build build/clang-tidy --target header_check -- --quiet
echo "Every header compiles alone."
