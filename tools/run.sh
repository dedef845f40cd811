#!/usr/bin/env bash
# The steps of `make run`: two worker processes tell a story, the text is compared with that of one rank, and
# the page is served: on a terminal until Ctrl-C, elsewhere until it has answered once. The served model is slowed down, so that
# an eye can follow, and its workers may be killed from the page.
set -euo pipefail
cd "$(dirname "$0")/.."

program=build/release/lockstep
model=models/stories260K
prompt="Once upon a time"
started=$SECONDS
tools/build.sh release lockstep
work="$(mktemp -d)"
server=""

stop_server() { # ends the node by its process id; it gets 10 s for its workers
  [ -n "$server" ] || return 0
  kill -TERM "$server" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=""
}
trap 'stop_server; rm -rf "$work"' EXIT

generate() { # generate RANKS: the greedy text
  "$program" run "$model" "$prompt" --ranks "$1" --temperature 0 --max-tokens 200 </dev/null
}

echo
echo "\"$prompt\", continued by two worker processes that share one model:"
echo
generate 2 | tee "$work/two_ranks"
echo
generate 1 >"$work/one_rank"
if ! [ -s "$work/one_rank" ] || ! cmp -s "$work/one_rank" "$work/two_ranks"; then
  echo "The text of one rank differs from that of two ranks:" >&2
  cat "$work/one_rank" >&2
  exit 1
fi
echo "One rank gives the same text, byte for byte."
echo "Took $((SECONDS - started)) s."

demo=(--alone --ranks 2 --demo --link-delay-us 2000)
echo "The page serves it on a link that is slowed to 2 ms a message, so that you can watch; \`lockstep serve\` without"
echo "--link-delay-us has the real speed. Its \"Pull a plug\" kills one of the two workers: the text goes on unchanged."

is_port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=8600
if is_port_taken "$port"; then
  echo "Port $port is in use, so another one is chosen."
  port=0
fi

if [ -t 0 ] && [ -t 1 ]; then
  rm -rf "$work"
  trap - EXIT
  exec "$program" serve "$model" "${demo[@]}" --port "$port"
fi

"$program" serve "$model" "${demo[@]}" --port "$port" </dev/null >"$work/serve" 2>&1 &
server=$!
address=""
for _ in $(seq 300); do # 30 s until the node has printed its address
  address="$(grep -oE 'http://[^ ]+' "$work/serve" 2>/dev/null | head -n 1 || true)"
  [ -z "$address" ] || break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
if [ -z "$address" ]; then
  cat "$work/serve" >&2
  echo "run: lockstep serve did not say its address" >&2
  exit 1
fi
port="${address##*:}"
port="${port%%[!0-9]*}"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$port" >&3
IFS= read -r -t 10 answer <&3 || answer="nothing within 10 s"
exec 3>&-
answer="${answer%$'\r'}"
case "$answer" in
  "HTTP/1.1 200"*) echo "The page answers at $address ($answer). Without a terminal it ends here." ;;
  *)
    echo "run: the page at $address answers $answer" >&2
    exit 1
    ;;
esac
