#!/usr/bin/env bash
# Makes an archive of what `cmake --install` installs, for machines without a .deb or Homebrew:
# lockstep-VERSION-SYSTEM-PROCESSOR.tar.gz with one folder of that name, which holds bin/ and share/.
#   tools/tarball.sh [--build FOLDER] [--output FOLDER]
# Without --build the preset release is built first, with the web page, for which Node is needed (LOCKSTEP_PAGE=OFF: the plain page). Default output: build/release/packages. The same build gives the same
# bytes: times are the commit's, or SOURCE_DATE_EPOCH's. On macOS the program is signed: ad hoc, or by the identity in
# LOCKSTEP_SIGN (docs/macs.md).
set -euo pipefail
cd "$(dirname "$0")/.."

build="" output="$PWD/build/release/packages"
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build="${2:?}" ;;
    --output) output="${2:?}" ;;
    *)
      echo "tarball: unknown argument \"$1\"; known are --build and --output" >&2
      exit 2
      ;;
  esac
  shift 2
done
epoch="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
if [ -z "$build" ]; then
  SOURCE_DATE_EPOCH="$epoch" LOCKSTEP_PAGE="${LOCKSTEP_PAGE:-ON}" tools/build.sh release lockstep
  build=build/release
fi

version="$(sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' src/base/version.h)"
case "$(uname -s)" in
  Darwin) system=macos ;;
  *) system="$(uname -s | tr '[:upper:]' '[:lower:]')" ;;
esac
name="lockstep-$version-$system-$(uname -m)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/$name" --strip >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
if [ "$system" = macos ]; then # stripping ended the linker's signature
  codesign --force --options runtime --sign "${LOCKSTEP_SIGN:--}" "$work/$name/bin/lockstep"
fi
chmod -R u=rwX,go=rX "$work/$name"
stamp="$(date -u -d "@$epoch" +%Y%m%d%H%M.%S 2>/dev/null || date -u -r "$epoch" +%Y%m%d%H%M.%S)"
find "$work/$name" -exec env TZ=UTC touch -h -t "$stamp" {} +
if tar --version 2>/dev/null | grep -q GNU; then
  owner=(--owner=0 --group=0 --numeric-owner --format=ustar)
else # macOS has that of BSD
  owner=(--uid 0 --gid 0 --uname "" --gname "" --format ustar)
fi
mkdir -p "$output"
(cd "$work" && find "$name" | LC_ALL=C sort >list && tar "${owner[@]}" --no-recursion -cf - -T list) | gzip -9n >"$output/$name.tar.gz"
echo "$output/$name.tar.gz"
