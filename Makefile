# `make` lists what there is. run and test start from a machine that has only make, git and root or sudo.
.DEFAULT_GOAL := help
.PHONY: help run test build package test-asan test-tsan test-faults test-cluster test-simulation test-aarch64 test-rdma test-clients fuzz bench format tidy clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /:/' | \
	  while IFS=: read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

run: ## two ranks on this machine tell a story, then serve the page (on a terminal, until Ctrl-C)
	@tools/run.sh

test: ## build everything and run all tests
	@tools/test.sh release

build: ## the program alone: build/release/lockstep
	@tools/build.sh release lockstep

package: ## a Debian package: build/release/packages/
	@tools/package.sh

test-asan: ## all tests with the address and undefined-behaviour sanitizers
	@tools/test.sh asan

test-tsan: ## the tests of everything that has threads, with the thread sanitizer
	@tools/test.sh tsan

test-faults: ## every cell of the fault matrix FAULT_ROUNDS (100) times (about an hour; make test has one round)
	@tools/fault_matrix.sh

test-cluster: ## four emulated machines, one broken at random under streams, TRIALS (100) times (make test has three)
	@tools/cluster_trials.sh

test-simulation: ## the simulated cluster: 10,000 seeds of 10 minutes and 20 of 24 hours (make test has 200 seeds)
	@tools/simulation.sh

test-aarch64: ## cross-compile for aarch64 Linux and run the tests in an emulator
	@tools/install_packages.sh base aarch64
	@tools/test_aarch64.sh

test-rdma: ## links over RDMA in an emulated machine that has soft-RoCE (root, Debian or Ubuntu)
	@tools/test_rdma.sh

test-clients: ## real clients against the real server: npm packages and coding agents (npm, root; 2 GB of downloads)
	@tools/test_clients.sh

fuzz: ## each fuzz target for FUZZ_SECONDS (60)
	@tools/fuzz.sh

bench: ## every benchmark of bench/
	@tools/bench.sh

format: ## clang-format over all C++ files
	@tools/install_packages.sh base clang
	@git ls-files -co --exclude-standard '*.cc' '*.h' '*.inl' | xargs clang-format -i

tidy: ## clang-tidy over all sources (minutes; the quick rules of tests/tidy are part of make test)
	@tools/clang_tidy.sh

clean: ## remove build/
	rm -rf build
