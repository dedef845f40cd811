#!/usr/bin/env bash
# Builds the program and a Debian package of it: build/release/packages/lockstep_VERSION_ARCHITECTURE.deb.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh release lockstep
command -v dpkg-shlibdeps >/dev/null || {
  echo "package: dpkg-shlibdeps is missing, which says what the package depends on: apt-get install dpkg-dev" >&2
  exit 1
}
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
cpack --config build/release/CPackConfig.cmake -B "$PWD/build/release/packages" >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
ls build/release/packages/*.deb
