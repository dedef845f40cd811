"""Headers and stubs of the libraries that lockstep uses, for compiling and linking it for macOS on Linux.

make_stubs.py FOLDER: FOLDER/include is links to the headers of this system's packages (Debian's), each library's for itself, for
next to them lie the headers of Linux's C library. FOLDER/arm64/NAME.tbd and FOLDER/x86_64/NAME.tbd are text stubs of a shared
library (format: the TBDv4 of LLVM's TextAPI), which say where macOS or Homebrew keeps it and which symbols it has: those that the
shared library of this system exports. A program that links therefore imports nothing that Debian's version lacks; Homebrew's
versions are newer."""

import glob
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import elf  # noqa: E402

HOMEBREW = {"arm64": "/opt/homebrew", "x86_64": "/usr/local"}  # `brew --prefix`
# stub: (where it lies on a Mac, the shared libraries of this system that have its symbols).
LIBRARIES = {
    "libc++.1": ("/usr/lib/libc++.1.dylib", ["libc++.so.1", "libc++abi.so.1"]),
    "libcurl.4": ("/usr/lib/libcurl.4.dylib", ["libcurl.so.4"]),
    "libedit.3": ("/usr/lib/libedit.3.dylib", ["libedit.so.2"]),
    "libcrypto.3": ("{homebrew}/opt/openssl@3/lib/libcrypto.3.dylib", ["libcrypto.so.3"]),
    "libssl.3": ("{homebrew}/opt/openssl@3/lib/libssl.3.dylib", ["libssl.so.3"]),
    "libpcre2-8.0": ("{homebrew}/opt/pcre2/lib/libpcre2-8.0.dylib", ["libpcre2-8.so.0"]),
    "libutf8proc.3": ("{homebrew}/opt/utf8proc/lib/libutf8proc.3.dylib", ["libutf8proc.so.*"]),
}
# Symbols of libc++ that are younger than this system's and that the headers use: symbol -> since which LLVM and macOS, by the
# table in libc++'s own __configuration/availability.h.
YOUNGER = {
    "_ZNSt3__122__libcpp_verbose_abortEPKcz": "LLVM 15, macOS 13.3",
}
LIBRARY_FOLDERS = ["/usr/lib/*-linux-gnu", "/usr/lib", "/usr/lib64"]
# Files and folders of /usr/include; those of openssl and curl may lie in a folder of the processor.
HEADERS = ["boost", "fmt", "CLI", "doctest", "openssl", "curl", "histedit.h", "pcre2.h", "utf8proc.h", "infiniband", "rdma",
           "vulkan", "vk_video"]
# The only header of Linux among them is the one that rdma-core's <infiniband/verbs.h> includes; this has the same types.
LINUX_TYPES = """#pragma once
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __u16, __be16, __le16;
typedef uint32_t __u32, __be32, __le32;
typedef uint64_t __u64, __be64, __le64;
typedef int8_t __s8;
typedef int16_t __s16;
typedef int32_t __s32;
typedef int64_t __s64;
typedef uint64_t __aligned_u64 __attribute__((aligned(8)));
"""


def find_library(pattern):
    for folder in LIBRARY_FOLDERS:
        found = sorted(glob.glob(os.path.join(folder, pattern)))
        if found:
            return found[0]
    raise FileNotFoundError(f"{pattern} is not installed; tools/install_packages.sh base macos installs it")


def stub_text(install_name, processor, symbols):
    """`symbols` are names in C or mangled; Mach-O prefixes each with an underscore."""
    names = ", ".join(f"'_{name}'" for name in sorted(symbols))
    targets = f"[ {processor}-macos ]"
    return (f"--- !tapi-tbd\ntbd-version: 4\ntargets: {targets}\ninstall-name: '{install_name}'\n"
            f"exports:\n  - targets: {targets}\n    symbols: [ {names} ]\n...\n")


def exported(patterns):
    return {name for pattern in patterns for name in elf.read(find_library(pattern)).exports()}


def link_headers(folder):
    os.makedirs(folder)
    for name in HEADERS:
        places = [place for place in ["/usr/include/" + name, *glob.glob("/usr/include/*-linux-gnu/" + name)]
                  if os.path.exists(place)]
        if not places:
            raise FileNotFoundError(f"/usr/include/{name} is not installed; tools/install_packages.sh base macos installs it")
        if len(places) == 1:
            os.symlink(places[0], os.path.join(folder, name))
            continue
        os.makedirs(os.path.join(folder, name))
        for place in places:
            for entry in os.listdir(place):
                os.symlink(os.path.join(place, entry), os.path.join(folder, name, entry))


def write_if_changed(path, text):
    """An unchanged file keeps its time, so that nothing is built again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    folder = sys.argv[1]
    shutil.rmtree(os.path.join(folder, "include"), ignore_errors=True)
    link_headers(os.path.join(folder, "include"))
    write_if_changed(os.path.join(folder, "linux", "types.h"), LINUX_TYPES)
    os.symlink("../linux", os.path.join(folder, "include", "linux"))
    for stub, (install_name, patterns) in LIBRARIES.items():
        symbols = exported(patterns) | (set(YOUNGER) if stub == "libc++.1" else set())
        for processor, homebrew in HOMEBREW.items():
            text = stub_text(install_name.format(homebrew=homebrew), processor, symbols)
            write_if_changed(os.path.join(folder, processor, f"{stub}.tbd"), text)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"make_stubs: {error}")
