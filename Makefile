# `make` lists the targets. run and test need only make, git and root or sudo to start from.
.DEFAULT_GOAL := help
.PHONY: help run test build page package test-asan test-tsan test-asan-quick test-tsan-quick test-faults test-cluster test-simulation test-aarch64 test-rdma test-macos test-clients test-page test-ansible tarball homebrew-formula reproducible fuzz bench format check-format lint tidy clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /:/' | \
	  while IFS=: read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

run: ## two ranks on this machine tell a story, then serve the page (on a terminal, until Ctrl-C)
	@tools/run.sh

test: ## build everything and run all tests
	@tools/test.sh release

build: ## only the program: build/release/lockstep
	@tools/build.sh release lockstep

page: ## the program with the web page (Node and npm are installed; other targets use them if they are there)
	@tools/install_packages.sh base page
	@LOCKSTEP_PAGE=ON tools/build.sh release lockstep

package: ## a Debian package and its bill of materials (CycloneDX): build/release/packages/
	@tools/package.sh

tarball: ## an archive of what is installed, for machines without apt and Homebrew: build/release/packages/
	@tools/tarball.sh

homebrew-formula: ## an archive of the sources and the Homebrew formula that builds it: build/release/packages/
	@tools/homebrew_formula.sh

test-asan: ## all tests with the address and undefined-behaviour sanitizers
	@tools/test.sh asan

test-tsan: ## the tests of everything with threads, with the thread sanitizer
	@tools/test.sh tsan

test-asan-quick: ## the suites that meet strangers' bytes, with the address and undefined-behaviour sanitizers
	@tools/test.sh asan quick

test-tsan-quick: ## the suites of threads, links and sockets, with the thread sanitizer
	@tools/test.sh tsan quick

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

test-macos: ## compile and link for macOS on Linux, check the programs' files (npm, x86-64; 350 MB of downloads; runs nothing there)
	@tools/test_macos.sh

test-clients: ## real clients against the real server: npm packages and coding agents (npm, root; 2 GB of downloads)
	@tools/test_clients.sh

test-page: ## the web page in Chromium against real nodes (Debian's nodejs, npm and chromium; 300 MB)
	@tools/test_page.sh

test-ansible: ## the Ansible role on three machines of its own, with played service managers (Debian, root)
	@tools/install_packages.sh base ansible
	@tools/build.sh release lockstep
	@ctest --test-dir build/release --output-on-failure -R '^ansible$$'

reproducible: ## build twice in two folders without ccache: the program and its package must have the same bytes
	@tools/reproducible.sh

fuzz: ## each fuzz target for FUZZ_SECONDS (60)
	@tools/fuzz.sh

bench: ## every benchmark of bench/
	@tools/bench.sh

format: ## clang-format over all C++ files
	@tools/install_packages.sh format
	@git ls-files -co --exclude-standard '*.cc' '*.h' '*.inl' | xargs clang-format -i

check-format: ## fail for each C++ file that `make format` would change
	@tools/check_format.sh

lint: ## clang-tidy on the sources changed since LINT_BASE (the previous commit), every header compiled alone
	@tools/lint.sh

tidy: ## clang-tidy over all sources (minutes; the quick rules of tests/tidy are part of make test)
	@tools/clang_tidy.sh

clean: ## remove build/
	rm -rf build
