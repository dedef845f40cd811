#!/bin/sh
# The all-reduce of `lockstep bench collective` from 8 B to 1 MiB next to Open MPI's: p50 in us of
# the slowest rank, best of 5 runs, ranks bound to cores alike. The columns of Open MPI need mpirun
# and mpicxx (Debian: openmpi-bin, libopenmpi-dev), which are installed if this runs as root.
#   bench/collective_bench.sh [path of lockstep] [ranks] [rounds]
set -eu
lockstep=${1:-build/release/lockstep}
ranks=${2:-2}
rounds=${3:-10000}
sizes="8 64 1024 4096 16384 65536 262144 1048576"
here=$(dirname "$0")
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

if ! command -v mpicxx > /dev/null && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  apt-get install -y -q openmpi-bin libopenmpi-dev > /dev/null 2>&1 || true
fi
if command -v mpicxx > /dev/null && command -v mpirun > /dev/null; then
  mpicxx -O2 -std=c++20 -o "$made/mpi_all_reduce" "$here/mpi_all_reduce.cc"
else
  echo "no mpicxx and mpirun here: the columns of Open MPI stay empty" >&2
fi

rounds_for() { if [ "$1" -ge 65536 ]; then echo $((rounds / 10)); else echo "$rounds"; fi; }

own() { # link, bytes, further flags
  link=$1
  bytes=$2
  shift 2
  "$lockstep" bench collective --ranks "$ranks" --link "$link" --bytes "$bytes" \
    --rounds "$(rounds_for "$bytes")" "$@" --json | sed 's/.*"p50_us": *\([0-9.]*\).*/\1/'
}

mpi() { # link, bytes
  [ -x "$made/mpi_all_reduce" ] || return 0
  transport=vader
  [ "$1" = shm ] || transport=tcp
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -np "$ranks" --oversubscribe \
    --bind-to core --mca pml ob1 --mca btl "self,$transport" "$made/mpi_all_reduce" 5 \
    "$(rounds_for "$2")" "$2" 2> /dev/null | cut -d' ' -f2
}

ratio() { # of two times; empty without the second
  [ -z "$2" ] || awk "BEGIN { printf \"%.2f\", $2 / $1 }"
}

printf '%-5s %6s %8s %10s %10s %10s %13s\n' link ranks bytes p50 encrypted 'Open MPI' 'times faster'
for link in shm tcp; do
  for bytes in $sizes; do
    plain=$(own $link "$bytes")
    sealed=-
    [ $link = shm ] || sealed=$(own $link "$bytes" --encrypt)
    other=$(mpi $link "$bytes")
    printf '%-5s %6s %8s %10.2f %10s %10s %13s\n' $link "$ranks" "$bytes" "$plain" "$sealed" \
      "${other:--}" "$(ratio "$plain" "$other")"
  done
done
