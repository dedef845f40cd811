#!/usr/bin/env bash
# Builds the program, its Debian package and its bill of materials (CycloneDX):
# build/release/packages/lockstep_VERSION_ARCHITECTURE.deb and lockstep_VERSION.cdx.json.
# The package has the real web page, for which Node is needed; LOCKSTEP_PAGE=OFF makes one with the plain page.
# The same commit, compiler and system packages give the same bytes: times are the commit's, or SOURCE_DATE_EPOCH's.
set -euo pipefail
cd "$(dirname "$0")/.."

export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}"
LOCKSTEP_PAGE="${LOCKSTEP_PAGE:-ON}" tools/build.sh release lockstep
command -v dpkg-shlibdeps >/dev/null || {
  echo "package: dpkg-shlibdeps is missing, which says what the package depends on: apt-get install dpkg-dev" >&2
  exit 1
}
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
packages="$PWD/build/release/packages"
cpack --config build/release/CPackConfig.cmake -B "$packages" >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
version="$(sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' src/base/version.h)"
bill="$packages/lockstep_$version.cdx.json"
python3 -B tools/sbom.py --program build/release/lockstep --source . --build-folder build/release --output "$bill" \
  --package "$packages/lockstep_${version}_$(dpkg --print-architecture).deb"
ls "$packages"/*.deb "$bill"
