#!/usr/bin/env bash
# Takes the pictures of docs/ from the page over real nodes, with 64 colours each.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v pngquant >/dev/null 2>&1 || {
  echo "page_pictures: pngquant is missing; install the package pngquant" >&2
  exit 1
}
taken="$(mktemp -d)"
trap 'rm -rf "$taken"' EXIT
tools/test_page.sh --pictures "$taken" --only views
tools/test_page.sh --pictures "$taken" --only first_run
tools/test_page.sh --pictures "$taken" --only cluster
mkdir -p docs/pictures
keep() { # keep TAKEN NAME
  pngquant --force --strip --speed 1 64 --output "docs/pictures/$2.png" "$taken/$1.png"
}
keep chat-1440-light chat
keep cluster-1440-light cluster
keep connect-1440-light connect
keep first-run-done first-run
keep pin pin
keep two-machines two-machines
