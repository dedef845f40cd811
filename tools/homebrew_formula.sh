#!/usr/bin/env bash
# Makes an archive of the committed sources, lockstep-VERSION.tar.gz, and the Homebrew formula that builds it, lockstep.rb,
# from packaging/homebrew/lockstep.rb.
#   tools/homebrew_formula.sh [--url URL] [--output FOLDER]
# URL is where the archive will lie (default: a file of this machine). Default output: build/release/packages.
set -euo pipefail
cd "$(dirname "$0")/.."

url="" output="$PWD/build/release/packages"
while [ $# -gt 0 ]; do
  case "$1" in
    --url) url="${2:?}" ;;
    --output) output="${2:?}" ;;
    *)
      echo "homebrew_formula: unknown argument \"$1\"; known are --url and --output" >&2
      exit 2
      ;;
  esac
  shift 2
done
version="$(sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' src/base/version.h)"
mkdir -p "$output"
archive="$(cd "$output" && pwd)/lockstep-$version.tar.gz"
git archive --format=tar --prefix="lockstep-$version/" HEAD | gzip -9n >"$archive"
url="${url:-file://$archive}"
case "$url" in
  *"/lockstep-$version.tar.gz") ;;
  *)
    echo "homebrew_formula: Homebrew reads the version from the end of the address, which must be /lockstep-$version.tar.gz" >&2
    exit 2
    ;;
esac
sum="$({ sha256sum "$archive" 2>/dev/null || shasum -a 256 "$archive"; } | cut -d ' ' -f 1)"
sed -e "s|@URL@|$url|" -e "s|@SHA256@|$sum|" packaging/homebrew/lockstep.rb >"$output/lockstep.rb"
printf '%s\n' "$archive" "$output/lockstep.rb"
