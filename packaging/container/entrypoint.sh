#!/bin/sh
# Entry point of the container: runs `lockstep ARGUMENTS`. Other machines can reach the port of `serve`, so the node gets an
# API key before its first start: LOCKSTEP_API_KEY (such as lk-$(openssl rand -hex 32), the same for all nodes), or a new
# one that is printed once. With --open no key is needed, so none is made.
set -eu

is_open=false
for argument in "$@"; do
  if [ "$argument" = --open ]; then is_open=true; fi
done
if [ "${1:-}" = serve ] && [ "$is_open" = false ] && [ "$(lockstep key list --json)" = "[]" ]; then
  if [ -n "${LOCKSTEP_API_KEY:-}" ]; then
    printf '%s\n' "$LOCKSTEP_API_KEY" | lockstep key add container --stdin
  else
    key=$(lockstep key add container)
    echo "The API key of this node, shown this once: $key"
  fi
fi
exec lockstep "$@"
