#!/usr/bin/env bash
# Installs the packages of npm that compile the web page, as web/package-lock.json names them, into web/node_modules; silent when
# they are there. npm checks their hashes.
#   tools/page_packages.sh [--needed]
# Where that is impossible, one line says why and the build goes on with the plain page; with --needed it is an error.
# LOCKSTEP_SKIP_PACKAGES=1 assumes that everything is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

needed=0
[ "${1:-}" != --needed ] || needed=1
[ "${LOCKSTEP_SKIP_PACKAGES:-0}" = 1 ] && exit 0

give_up() { # give_up REASON
  if [ "$needed" = 1 ]; then
    echo "page_packages: $1, which the page needs; \`make page\` installs Node and npm, LOCKSTEP_PAGE=OFF builds the plain page" >&2
    exit 1
  fi
  echo "The page is not compiled: $1."
  exit 0
}

[ -f web/package-lock.json ] || give_up "web/package-lock.json is missing"
installed=web/node_modules/.package-lock.json # npm writes it last
[ -f "$installed" ] && ! [ web/package-lock.json -nt "$installed" ] && exit 0
command -v node >/dev/null 2>&1 || give_up "Node is missing"
command -v npm >/dev/null 2>&1 || give_up "npm is missing"

options=(--no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000)
[ -d web/node_modules/playwright-core ] || options+=(--omit=dev) # who has the packages of its tests keeps them
deadline=()
! command -v timeout >/dev/null 2>&1 || deadline=(timeout 300)
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
echo "Installing the packages of the page with npm"
(cd web && ${deadline[@]+"${deadline[@]}"} npm ci "${options[@]}") >"$log" 2>&1 </dev/null || {
  rm -f "$installed"
  tail -n 3 "$log" >&2
  give_up "npm could not install its packages"
}
touch "$installed"
