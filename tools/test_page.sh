#!/usr/bin/env bash
# The web page in Chromium against real nodes (docs/page.md): installs Node, npm, Chromium and the packages of web/package-lock.json
# where they are missing, builds the program with the page, and runs the unit tests, the tests of components and those over nodes.
#   tools/test_page.sh [--prepare] [--pictures FOLDER] [--only WORD]
# --prepare: only installs; --only: only the tests over nodes whose file has WORD in its name.
# Nothing is skipped: where a part cannot be installed, this fails and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

only="" prepare=0
arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only="${2:?--only needs a word}" && arguments+=("$only") && shift ;;
    --prepare) prepare=1 ;;
    --pictures) arguments+=(--pictures "$(realpath -m "${2:?--pictures needs a folder}")") && shift ;;
    *) echo "test_page: unknown argument \"$1\"; known are --prepare, --pictures FOLDER and --only WORD" >&2 && exit 2 ;;
  esac
  shift
done

tools/install_packages.sh base page browser
if [ ! -d web/node_modules/playwright-core ] || [ ! -d web/node_modules/axe-core ]; then
  echo "Installing the packages of the page's tests with npm"
  (cd web && timeout 300 npm ci --no-audit --no-fund --loglevel=error) </dev/null
fi
[ "$prepare" = 0 ] || exit 0
export LOCKSTEP_PROGRAM="${LOCKSTEP_PROGRAM:-build/release/lockstep}"
[ "$LOCKSTEP_PROGRAM" != build/release/lockstep ] || LOCKSTEP_PAGE=ON tools/build.sh release lockstep

# A user who is root has no sandbox in Chromium; the tests start it without one.
if [ -z "$only" ]; then
  web/node_modules/.bin/tsc -p web
  (cd web && npm test --silent)
  (cd web && npm run test:browser --silent)
fi
exec node web/tests/run_page.mjs ${arguments[@]+"${arguments[@]}"}
