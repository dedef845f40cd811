#!/usr/bin/env bash
# Builds the sources in two folders, whose paths differ, without ccache, and compares the results byte by byte.
#   tools/reproducible.sh [TARGET...]    targets of CMake (default: lockstep, and the Debian package of it)
set -euo pipefail
cd "$(dirname "$0")/.."

export CCACHE_DISABLE=1
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}"
targets=("$@")
[ $# -gt 0 ] || targets=(lockstep)
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
folders=("$work/first" "$work/second of another length")

build() { # build FOLDER UMASK
  mkdir -p "$1"
  git ls-files -co --exclude-standard -z | tar -c --null -T - | tar -x -C "$1"
  # The packages that compile the page, so that it is compared too.
  [ ! -f web/node_modules/.package-lock.json ] || tar -c web/node_modules | tar -x -C "$1"
  (
    cd "$1"
    umask "$2"
    cmake --preset release -DLOCKSTEP_TESTS=OFF
    cmake --build build/release --target "${targets[@]}"
    if [ "${targets[*]}" = lockstep ] && command -v dpkg-shlibdeps; then
      cpack --config build/release/CPackConfig.cmake -B "$1/packages"
    fi
  ) >"$1.log" 2>&1
}

products() { # products FOLDER: the files to compare
  (cd "$1" && find . \( -name 'liblockstep_*.a' -o -path ./build/release/lockstep -o -name '*.deb' \) \
    -not -path '*/_CPack_Packages/*' | sort)
}

trap 'tail -qn 20 "$work"/*.log >&2' ERR
build "${folders[0]}" 022
build "${folders[1]}" 027
trap - ERR
files="$(products "${folders[0]}")"
if [ -z "$files" ] || [ "$files" != "$(products "${folders[1]}")" ]; then
  echo "reproducible: the two builds made different files" >&2
  exit 1
fi
status=0
while IFS= read -r file; do
  if cmp -s "${folders[0]}/$file" "${folders[1]}/$file"; then
    echo "equal      $(sha256sum <"${folders[0]}/$file" | cut -c1-16)  $file"
  else
    echo "different  $file" >&2
    status=1
  fi
done <<<"$files"
exit "$status"
