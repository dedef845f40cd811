#!/usr/bin/env bash
# Installs the packages that a build needs and that are missing; silent when nothing is missing.
#   tools/install_packages.sh [--dry-run] [base] [clang] [format] [aarch64] [rdma] [clients] [ansible] [macos] [page] [browser]
# Debian 12 and newer, Ubuntu 24.04 and newer (apt), macOS (Homebrew). --dry-run prints and changes nothing.
# LOCKSTEP_SKIP_PACKAGES=1 assumes that everything is installed. LOCKSTEP_OS_RELEASE names another os-release file.
set -euo pipefail

dry_run=0
groups=""
for argument in "$@"; do
  case "$argument" in
    --dry-run) dry_run=1 ;;
    base | clang | format | aarch64 | rdma | clients | ansible | macos | page | browser) groups="$groups $argument" ;;
    *)
      echo "install_packages: unknown argument \"$argument\"; known are --dry-run, base, clang, format, aarch64, rdma, clients, ansible, macos, page, browser" >&2
      exit 2
      ;;
  esac
done
groups="${groups:-base}"
[ "${LOCKSTEP_SKIP_PACKAGES:-0}" = 1 ] && exit 0

# An entry is a package, or command:package if any installation of the command will do.
packages_debian() {
  local release="${LOCKSTEP_OS_RELEASE:-/etc/os-release}" id version boost json
  id="$(. "$release" && echo "${ID:-}")"
  version="$(. "$release" && echo "${VERSION_ID:-}")"
  if [ "$id" = debian ] && [ "$version" = 12 ]; then
    boost=libboost1.81-dev json=libboost-json1.81-dev # libboost-dev is 1.74 there, which is too old
  else
    boost=libboost-dev json=libboost-json-dev
  fi
  for group in $groups; do
    case "$group" in
      base)
        echo g++:g++ ccache:ccache cmake:cmake ninja:ninja-build python3:python3 "$boost" "$json" libfmt-dev libssl-dev libcurl4-openssl-dev \
          libcli11-dev libedit-dev pkg-config:pkg-config libpcre2-dev libutf8proc-dev doctest-dev libbenchmark-dev libibverbs-dev valgrind:valgrind \
          glslangValidator:glslang-tools libvulkan-dev mesa-vulkan-drivers vulkan-validationlayers
        ;;
      clang) echo clang++:clang clang-format:clang-format clang-tidy:clang-tidy ;;
      format) echo clang-format:clang-format ;;
      aarch64) echo aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64:qemu-user ;;
      rdma) echo qemu-system-x86_64:qemu-system-x86 cpio:cpio gzip:gzip xz:xz-utils flock:util-linux ;;
      clients) echo node:nodejs npm:npm unshare:util-linux ip:iproute2 ;;
      ansible) echo ansible-core ansible-lint python3-apt dpkg-dev procps unshare:util-linux ip:iproute2 ;;
      page) echo node:nodejs npm:npm ;;
      browser) echo chromium:chromium script:bsdutils ;; # script: the terminal on which a machine joins in the tests of the page
      macos) echo node:nodejs npm:npm libc++1 libc++abi1 ;; # the libraries: what they export (tools/macos/make_stubs.py)
    esac
  done
}

packages_macos() {
  for group in $groups; do
    case "$group" in
      base) echo ccache:ccache cmake:cmake ninja:ninja boost fmt openssl@3 curl cli11 pkg-config:pkgconf pcre2 utf8proc doctest google-benchmark glslangValidator:glslang vulkan-headers molten-vk ;;
      clang) echo clang-format:clang-format llvm ;;
      format) echo clang-format:clang-format ;;
      aarch64) ;; # a Mac with Apple silicon runs these tests natively
      rdma) ;;    # the emulated machine is a Linux one
      clients | page) echo node:node npm:node ;;
      browser) ;; # CHROMIUM names the browser; the tests of the page run on Linux
      ansible) echo ansible-playbook:ansible ansible-lint:ansible-lint ;; # the test needs Linux
      macos) ;; # a Mac compiles for itself
    esac
  done
}

missing_of() { # missing_of IS_INSTALLED entries...
  local is_installed="$1" entry
  shift
  for entry in "$@"; do
    case "$entry" in
      *:*) command -v "${entry%%:*}" >/dev/null 2>&1 && continue ;;
    esac
    "$is_installed" "${entry##*:}" || echo "${entry##*:}"
  done
}

has_deb() { dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }
has_formula() { brew list --versions "$1" >/dev/null 2>&1; }

install_debian() {
  local missing root=""
  missing="$(missing_of has_deb $(packages_debian) | tr '\n' ' ')"
  [ -n "$missing" ] || return 0
  echo "Installing with apt-get: $missing"
  [ "$dry_run" = 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
      echo "install_packages: this needs root; run as root: apt-get install $missing" >&2
      return 1
    }
    root=sudo
  fi
  local log
  log="$(mktemp)"
  { $root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 update &&
    $root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $missing; } \
    >"$log" 2>&1 </dev/null || {
    tail -n 20 "$log" >&2
    echo "install_packages: apt-get could not install the packages above; its last lines say why" >&2
    rm -f "$log"
    return 1
  }
  rm -f "$log"
}

install_macos() {
  command -v brew >/dev/null 2>&1 || {
    echo "install_packages: Homebrew is missing; install it from https://brew.sh and try again" >&2
    return 1
  }
  local missing
  missing="$(missing_of has_formula $(packages_macos) | tr '\n' ' ')"
  [ -n "$missing" ] || return 0
  echo "Installing with brew: $missing"
  [ "$dry_run" = 0 ] || return 0
  brew install $missing
}

if [ "$(uname -s)" = Darwin ]; then
  install_macos
elif command -v apt-get >/dev/null 2>&1; then
  install_debian
else
  echo "install_packages: no apt-get and no Homebrew here, so nothing was installed; CONTRIBUTING.md lists what is needed"
fi
