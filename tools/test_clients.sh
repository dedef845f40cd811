#!/usr/bin/env bash
# Real clients against the real server: npm packages (tests/clients/packages.txt) are installed below build/clients, 2
# GB in total, and tests/clients/run_clients.py runs them in a network that has only this machine's loopback. Arguments
# choose suites (openai anthropic ollama ai_sdk ...) and agents (opencode codex cline ...). Packages that cannot be
# installed are skipped with a message; all others must pass.
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
  # Enough time for a slow network, but with a limit.
  local npm=(timeout "${CLIENT_INSTALL_SECONDS:-600}" npm)
  local quiet=(--no-audit --no-fund --loglevel=error)
  # First the list of packages, which is compared with the known hashes before anything is unpacked or run.
  if (cd "$folder" && "${npm[@]}" install --package-lock-only --save-exact "${quiet[@]}" "$@") \
    </dev/null >"$folder/install.log" 2>&1; then
    python3 -B tests/clients/check_integrity.py "$folder/package-lock.json" "$@" || exit 1
  fi
  # `ci` refuses a list that lacks the optional packages of other systems, which npm itself leaves out; `install` holds what
  # the list has to its hashes too.
  if (cd "$folder" && { "${npm[@]}" ci "${quiet[@]}" || "${npm[@]}" install "${quiet[@]}"; }) \
    </dev/null >>"$folder/install.log" 2>&1; then
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
  # Some packages require a newer Node.js than the system's.
  [ "$folder" != node ] || PATH="$(ls -d "$clients"/node/node_modules/*/bin 2>/dev/null | head -n 1):$PATH"
done <tests/clients/packages.txt

# A separate network and process namespace: some agents leave a process running, which ends with the namespace.
own=(unshare --net --pid --fork --kill-child --mount-proc)
if ! "${own[@]}" true 2>/dev/null; then
  echo "clients: skipped, a network of their own needs root (unshare --net), and foreign programs run in no other"
  exit 0
fi
exec "${own[@]}" bash -c 'ip link set lo up && exec python3 -B tests/clients/run_clients.py "$@"' clients "$clients" "$@"
