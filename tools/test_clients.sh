#!/usr/bin/env bash
# Real clients against the real server: packages of npm (tests/clients/packages.txt) are installed below build/clients,
# 2 GB in all, and tests/clients/run_clients.py runs them in a network that has nothing but this machine's loopback.
# Arguments choose suites (openai anthropic ollama ai_sdk ...) and agents (opencode codex cline ...). What cannot be
# installed is skipped with a message; what is there must pass.
set -euo pipefail
cd "$(dirname "$0")/.."

clients="$PWD/build/clients"
mkdir -p "$clients"
tools/install_packages.sh base clients || {
  echo "clients: skipped, npm could not be installed"
  exit 0
}
tools/build.sh release lockstep call_walks

case "$(uname -m)" in
  x86_64) processor=x64 ;;
  aarch64 | arm64) processor=arm64 ;;
  *) processor="$(uname -m)" ;;
esac
system="$(uname -s | tr '[:upper:]' '[:lower:]')-$processor"

install_client() { # install_client FOLDER PACKAGE@VERSION...
  local folder="$clients/$1" wanted
  shift
  wanted="$*"
  [ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ] || return 0
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{"private": true}' >"$folder/package.json"
  echo "Installing $wanted"
  # Time enough for a slow network, and an end in any case.
  if (cd "$folder" && timeout "${CLIENT_INSTALL_SECONDS:-600}" \
    npm install --save-exact --no-audit --no-fund --loglevel=error "$@" </dev/null >"$folder/install.log" 2>&1); then
    echo "$wanted" >"$folder/installed"
  else
    tail -n 3 "$folder/install.log" >&2
    echo "clients: skipped, npm could not install $wanted" >&2
    rm -rf "$folder/node_modules"
  fi
}

while read -r folder packages; do
  case "$folder" in "" | \#*) continue ;; esac
  packages="${packages//\{system\}/$system}"
  install_client "$folder" $packages
  # Some packages ask for a newer Node.js than the system's.
  [ "$folder" != node ] || PATH="$(ls -d "$clients"/node/node_modules/*/bin 2>/dev/null | head -n 1):$PATH"
done <tests/clients/packages.txt

# A network and a tree of processes of their own: some agents leave a process behind, which ends with the tree.
own=(unshare --net --pid --fork --kill-child --mount-proc)
if ! "${own[@]}" true 2>/dev/null; then
  echo "clients: skipped, a network of their own needs root (unshare --net), and foreign programs run in no other"
  exit 0
fi
exec "${own[@]}" bash -c 'ip link set lo up && exec python3 -B tests/clients/run_clients.py "$@"' clients "$clients" "$@"
