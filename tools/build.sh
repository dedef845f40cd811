#!/usr/bin/env bash
# Installs what is missing, configures a preset and builds it.
#   tools/build.sh PRESET [TARGET...]     release dev asan tsan fuzz; without targets everything
# LOCKSTEP_PAGE=ON: an error unless the web page can be compiled; OFF: the plain page; without it, what is possible.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:-release}"
[ $# -eq 0 ] || shift
started=$SECONDS
packages=base
[ "$preset" = fuzz ] && packages="base clang"
tools/install_packages.sh $packages
page="${LOCKSTEP_PAGE:-AUTO}"
case "$page" in
  ON) tools/page_packages.sh --needed ;;
  AUTO) tools/page_packages.sh ;;
esac

options=("-DLOCKSTEP_PAGE=$page")
if [ "$(uname -s)" = Darwin ]; then # Homebrew keeps its OpenSSL out of the usual places
  options+=("-DOPENSSL_ROOT_DIR=$(brew --prefix openssl@3)")
fi
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || {
  cat "$log" >&2
  echo "build: cmake could not configure the preset \"$preset\"; its messages are above" >&2
  exit 1
}

sed -n 's/^-- \(The plain page is built in\)/\1/p' "$log"

# On a terminal ninja redraws one line; elsewhere only every tenth of the way is printed.
show_progress() {
  local line percent next=10
  while IFS= read -r line; do
    case "$line" in
      progress=*)
        percent="${line#progress=}"
        percent="${percent%%\%*}"
        percent="${percent//[^0-9]/}"
        if [ "${percent:-0}" -ge "$next" ]; then
          echo "  $percent %"
          next=$((percent / 10 * 10 + 10))
        fi
        ;;
      "ninja: no work to do." | "ninja: Entering directory"* | "") ;;
      *) echo "$line" ;;
    esac
  done
}

cores="$(getconf _NPROCESSORS_ONLN)"
echo "Building build/$preset ($cores jobs)"
if [ $# -gt 0 ]; then targets=(--target "$@"); else targets=(); fi
if [ -t 1 ]; then
  cmake --build "build/$preset" --parallel "$cores" ${targets[@]+"${targets[@]}"}
else
  NINJA_STATUS='progress=%p ' cmake --build "build/$preset" --parallel "$cores" \
    ${targets[@]+"${targets[@]}"} 2>&1 | show_progress
fi
echo "Built in $((SECONDS - started)) s"
