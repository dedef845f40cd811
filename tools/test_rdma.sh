#!/usr/bin/env bash
# Runs tests/rdma over soft-RoCE devices in an emulated machine (tools/rdma-vm --help), whose kernel and RDMA packages
# are downloaded once (some 440 MiB in ~/.cache/rdma-vm). Needs root and apt-get.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "test_rdma: this needs root on Debian or Ubuntu, for an emulated machine" >&2
  exit 1
fi
tools/install_packages.sh base rdma
tools/build.sh release rdma_test rdma_golden_test
sums=build/release/golden_sums # of this machine's answers, to compare with
LOCKSTEP_GOLDEN_SUMS=$sums build/release/rdma_golden_test --test-suite=outside
# rdma_test is the last: it takes the network down.
tools/rdma-vm --timeout 600 --env "LOCKSTEP_GOLDEN_SUMS=$sums" -- \
  bash -c 'build/release/rdma_golden_test --test-suite=inside && build/release/rdma_test'
